package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// podFile stores the interfaces of VPP that commands have assigned to pods, in a file at this path.
// The file is replaced as a whole. The interfaces actor loads it when it starts, and saves it
// before it answers a command. It is safe for one goroutine at a time.
type podFile string

var _ interfaces.Store = podFile("")

// podDocument is the content of the file.
type podDocument struct {
	Version int        `json:"version"`
	Pods    []podEntry `json:"pods"`
}

// podEntry is the interface of one pod.
type podEntry struct {
	Pod       string `json:"pod"`
	Interface string `json:"interface"`
}

// podFileVersion is the version of the format; a file of another version is not read.
const podFileVersion = 1

// Load satisfies interfaces.Store. A file that cannot be read is renamed, for inspection, and the
// next save makes a new one.
func (f podFile) Load() (*messages.Attachments, error) {
	content, err := ownedFile(f).Load()
	if err != nil || content == nil {
		return &messages.Attachments{}, err
	}
	var stored podDocument
	if err = json.Unmarshal(content, &stored); err == nil && stored.Version != podFileVersion {
		err = fmt.Errorf("version %d is not %d", stored.Version, podFileVersion)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load interfaces of pods: %s: %w", f, err), os.Rename(string(f), string(f)+".unreadable"))
	}
	attachments := &messages.Attachments{}
	for _, p := range stored.Pods {
		attachments.Items = append(attachments.Items, &messages.Attachment{Pod: p.Pod, Interface: p.Interface})
	}
	return attachments, nil
}

func (f podFile) Save(attachments *messages.Attachments) error {
	stored := podDocument{Version: podFileVersion, Pods: []podEntry{}}
	for _, a := range attachments.GetItems() {
		stored.Pods = append(stored.Pods, podEntry{Pod: a.GetPod(), Interface: a.GetInterface()})
	}
	content, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return err
	}
	return ownedFile(f).Save(append(content, '\n'))
}

// ownedFile stores the record of the agent's own objects in VPP, in a file at this path.
type ownedFile string

var _ owned.Store = ownedFile("")

func (f ownedFile) Load() ([]byte, error) {
	// an unfinished file does no harm
	_ = durable.Clean(durable.Disk{}, filepath.Dir(string(f)), filepath.Base(string(f))+".")
	content, err := os.ReadFile(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load %s: %w", f, err)
	}
	return content, nil
}

func (f ownedFile) Save(document []byte) error {
	if err := durable.Replace(durable.Disk{}, string(f), document); err != nil {
		return fmt.Errorf("save %s: %w", f, err)
	}
	return nil
}
