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

// podFile keeps which interface is that of which pod, at a path. Readers see the old file or the new one, never half of one.
type podFile string

var _ interfaces.Store = podFile("")

// podsKept is the content of the file.
type podsKept struct {
	Version int        `json:"version"`
	Pods    []podInVPP `json:"pods"`
}

// podInVPP is one line of it.
type podInVPP struct {
	Pod       string `json:"pod"`
	Interface string `json:"interface"`
}

// podsVersion is that of the format; a file of another one is not read.
const podsVersion = 1

// Load satisfies interfaces.Store. A file that cannot be read is put aside, so that it can be looked at and does not stand in the way.
func (f podFile) Load() (*messages.Attachments, error) {
	_ = durable.Clean(durable.Disk{}, filepath.Dir(string(f)), filepath.Base(string(f))+".") // an unfinished file does no harm
	content, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return &messages.Attachments{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load interfaces of pods: %w", err)
	}
	var kept podsKept
	if err = json.Unmarshal(content, &kept); err == nil && kept.Version != podsVersion {
		err = fmt.Errorf("version %d is not %d", kept.Version, podsVersion)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load interfaces of pods: %s: %w", f, err), os.Rename(string(f), string(f)+".unreadable"))
	}
	told := &messages.Attachments{}
	for _, p := range kept.Pods {
		told.Items = append(told.Items, &messages.Attachment{Pod: p.Pod, Interface: p.Interface})
	}
	return told, nil
}

// Save satisfies interfaces.Store.
func (f podFile) Save(told *messages.Attachments) error {
	if err := f.save(told); err != nil {
		return fmt.Errorf("save interfaces of pods: %w", err)
	}
	return nil
}

func (f podFile) save(told *messages.Attachments) error {
	kept := podsKept{Version: podsVersion, Pods: []podInVPP{}}
	for _, a := range told.GetItems() {
		kept.Pods = append(kept.Pods, podInVPP{Pod: a.GetPod(), Interface: a.GetInterface()})
	}
	content, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(durable.Disk{}, string(f), append(content, '\n'))
}

// commandTimeout bounds a command whose caller sets no bound, like the one of the API: the actor answers earlier, unless it hangs.
const commandTimeout = 10 * time.Second

// AttachPod satisfies api.Controller. The interfaces actor answers by the deadline of the command, which is shorter than that of the request.
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

// commandError gives the reason why a command has done nothing the status that it has in the API.
func commandError(object string, err error) error {
	means := map[error]error{command.ErrState: api.ErrConflict, command.ErrAway: api.ErrUnavailable, command.ErrTooLate: context.DeadlineExceeded}
	meant := means[command.Meaning(err)]
	err = fmt.Errorf("%s: %w", object, err)
	if meant != nil {
		return fmt.Errorf("%w: %w", meant, err)
	}
	return err
}
