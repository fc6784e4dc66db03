package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/messages"
)

// podFile stores the interfaces of pods in a file at this path, which is replaced as a whole.
type podFile string

var _ interfaces.Store = podFile("")

// podsDocument is the content of the file.
type podsDocument struct {
	Version int        `json:"version"`
	Pods    []podInVPP `json:"pods"`
}

// podInVPP is the interface of one pod.
type podInVPP struct {
	Pod       string `json:"pod"`
	Interface string `json:"interface"`
}

// podsVersion is the version of the format; a file of another version is not read.
const podsVersion = 1

// Load satisfies interfaces.Store. A file that cannot be read is renamed, for inspection, and the
// next save makes a new one.
func (f podFile) Load() (*messages.Attachments, error) {
	// an unfinished file does no harm
	_ = durable.Clean(durable.Disk{}, filepath.Dir(string(f)), filepath.Base(string(f))+".")
	content, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return &messages.Attachments{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load interfaces of pods: %w", err)
	}
	var stored podsDocument
	if err = json.Unmarshal(content, &stored); err == nil && stored.Version != podsVersion {
		err = fmt.Errorf("version %d is not %d", stored.Version, podsVersion)
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

// Save satisfies interfaces.Store.
func (f podFile) Save(attachments *messages.Attachments) error {
	if err := f.save(attachments); err != nil {
		return fmt.Errorf("save interfaces of pods: %w", err)
	}
	return nil
}

func (f podFile) save(attachments *messages.Attachments) error {
	stored := podsDocument{Version: podsVersion, Pods: []podInVPP{}}
	for _, a := range attachments.GetItems() {
		stored.Pods = append(stored.Pods, podInVPP{Pod: a.GetPod(), Interface: a.GetInterface()})
	}
	content, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(durable.Disk{}, string(f), append(content, '\n'))
}

// commandTimeout bounds a command without a deadline of the caller. The actor answers earlier,
// unless it hangs.
const commandTimeout = 10 * time.Second

// AttachPod satisfies api.Controller. The interfaces actor answers by the deadline of the command,
// which is shorter than that of the request.
func (b backend) AttachPod(ctx context.Context, pod, name string) (*api.PodInterface, error) {
	b.stage.countChanges(1)
	var question any = &interfaces.Attach{Pod: pod, Interface: name}
	if name == "" {
		question = &interfaces.Detach{Pod: pod}
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	result, err := askFor[*command.Result](ctx, b.Agent, address.Interfaces, question)
	if err != nil {
		return nil, err
	}
	if result.Err == nil {
		return &api.PodInterface{Pod: pod, Interface: name, Cause: result.Cause}, nil
	}
	return nil, commandError("pod "+pod, result.Err)
}

// commandError gives the error of a command its status in the API.
func commandError(object string, err error) error {
	means := map[error]error{command.ErrState: api.ErrConflict, command.ErrAway: api.ErrUnavailable, command.ErrTooLate: context.DeadlineExceeded}
	meant := means[command.Meaning(err)]
	err = fmt.Errorf("%s: %w", object, err)
	if meant != nil {
		return fmt.Errorf("%w: %w", meant, err)
	}
	return err
}
