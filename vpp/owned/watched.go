package owned

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	interfaceapi "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Watched is a connection to VPP that keeps a record of the objects that pass through it. It
// changes no request.
type Watched struct {
	link.Runner
	Record *Record
}

// Run satisfies link.Runner.
func (w *Watched) Run(ctx context.Context, on func(*messages.LinkState)) error {
	return w.Runner.Run(ctx, func(s *messages.LinkState) {
		if s.GetUp() {
			w.Record.Connected(s.GetBoot())
		}
		on(s)
	})
}

// Do satisfies link.Caller.
func (w *Watched) Do(ctx context.Context, reqs []api.Message) ([]link.Result, error) {
	var added []Object
	about := false
	for _, req := range reqs {
		objects, add := Objects(req)
		if about = about || len(objects) > 0; add {
			added = append(added, objects...)
		}
	}
	if !about {
		return w.Runner.Do(ctx, reqs)
	}
	before := w.Record.begin(added)
	results, err := w.Runner.Do(ctx, reqs)
	gone := map[Object]bool{}
	for i, req := range reqs {
		failure := err
		if i < len(results) {
			failure = results[i].Err
		}
		objects, add := Objects(req)
		for _, o := range objects {
			switch refused := failure != nil && !errors.Is(failure, link.ErrUnknown); {
			case add && refused && !before[o], !add && failure == nil:
				gone[o] = true
			case add && !refused: // perhaps replaced by the same requests
				delete(gone, o)
			}
		}
	}
	w.Record.end(added, slices.Collect(maps.Keys(gone)))
	return results, err
}

// Dump satisfies link.Caller.
func (w *Watched) Dump(ctx context.Context, req api.Message, each func(api.Message)) error {
	if m, is := req.(*interfaceapi.SwInterfaceDump); is && m.SwIfIndex == ^interface_types.InterfaceIndex(0) && !m.NameFilterValid {
		names := map[uint32]string{}
		err := w.Runner.Dump(ctx, req, func(msg api.Message) {
			if d, ok := msg.(*interfaceapi.SwInterfaceDetails); ok {
				names[uint32(d.SwIfIndex)] = d.InterfaceName
			}
			each(msg)
		})
		if err == nil {
			w.Record.interfaces(names)
		}
		return err
	}
	kinds := shows(req)
	if kinds == nil {
		return w.Runner.Dump(ctx, req, each)
	}
	before, there := w.Record.begin(nil), map[Object]bool{}
	err := w.Runner.Dump(ctx, req, func(msg api.Message) {
		for _, o := range shown(msg) {
			there[o] = true
		}
		each(msg)
	})
	if err == nil {
		w.Record.seen(kinds, before, there)
	}
	return err
}
