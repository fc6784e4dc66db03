package backend

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// commandTimeout limits a command if the caller has no earlier deadline. The actor answers earlier,
// unless it hangs.
const commandTimeout = 10 * time.Second

// AttachPod satisfies api.Controller. The deadline of the command is shorter than the deadline of
// the request, so that the client gets the error of the interfaces actor.
func (b Backend) AttachPod(ctx context.Context, pod, name string) (*api.PodInterface, error) {
	b.agent.Changes()
	var question any = &interfaces.Attach{Pod: pod, Interface: name}
	if name == "" {
		question = &interfaces.Detach{Pod: pod}
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	result, err := Ask[*command.Result](ctx, b.system(), address.Interfaces, question)
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
