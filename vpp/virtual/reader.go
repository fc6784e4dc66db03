package virtual

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Reader reads VPP beside the connection: it costs no time and is not counted. It is for the checks
// of a simulation, not for actors.
type Reader struct{ vpp *simulator.VPP }

// NewReader returns a Reader of a VPP.
func NewReader(vpp *simulator.VPP) Reader { return Reader{vpp} }

// Reader returns a Reader of this VPP.
func (d *Stream) Reader() Reader { return Reader{d.VPP} }

// Do satisfies link.Caller. The error of a request that VPP does not answer wraps link.ErrUnknown.
func (r Reader) Do(_ context.Context, requests []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(requests))
	for i, request := range requests {
		replies, err := r.vpp.Exec(request)
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
	details, err := r.vpp.Exec(request)
	if errors.Is(err, simulator.ErrUnknownMessage) {
		return fmt.Errorf("%w: %s", link.ErrUnsupported, request.GetMessageName())
	}
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
