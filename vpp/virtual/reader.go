package virtual

import (
	"context"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Reader reads VPP without the connection: it needs no session, takes no time and is not counted. It is for the checks of a simulation, not
// for actors.
type Reader struct{ stream *Stream }

// Reader returns a Reader of the present VPP.
func (d *Stream) Reader() Reader { return Reader{d} }

// Do satisfies link.Caller. The error of a request that VPP does not answer wraps link.ErrUnknown.
func (r Reader) Do(_ context.Context, requests []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(requests))
	for i, request := range requests {
		replies, err := r.stream.VPP.Exec(request)
		switch {
		case err != nil || len(replies) != 1:
			results[i] = link.Result{Err: fmt.Errorf("%w: %s: %d replies, %w", link.ErrUnknown, request.GetMessageName(), len(replies), err)}
		case retvalOf(replies[0]) != 0:
			results[i] = link.Result{Reply: replies[0], Err: &link.RetvalError{Message: request.GetMessageName(), Retval: retvalOf(replies[0])}}
		default:
			results[i] = link.Result{Reply: replies[0]}
		}
	}
	return results, nil
}

// Dump satisfies link.Caller.
func (r Reader) Dump(_ context.Context, request api.Message, each func(api.Message)) error {
	details, err := r.stream.VPP.Exec(request)
	if err != nil {
		return fmt.Errorf("%s: %w", request.GetMessageName(), err)
	}
	for _, m := range details {
		if strings.HasSuffix(m.GetMessageName(), "_details") {
			each(m)
		}
	}
	return nil
}
