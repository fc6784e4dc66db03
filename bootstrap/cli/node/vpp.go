package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// withVPP connects to VPP while a function runs. If VPP does not run, it returns an error at once.
// The connection outlives ctx until the function has returned, so that it can undo what it did.
func withVPP(ctx context.Context, socket string, use func(context.Context, *messages.LinkState, link.Caller) error) error {
	connection, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	unconnected := context.AfterFunc(ctx, cancel) // until the function runs
	defer unconnected()
	log := slog.New(slog.DiscardHandler)
	link.Quiet(log)
	l := link.New(link.Config{Socket: socket}, log)
	used := make(chan error, 1)
	reports, connected, reason := 0, false, ""
	err := l.Run(connection, func(state *messages.LinkState) {
		switch reports++; {
		case connected || reason != "" || reports == 1:
			// the first report comes before the first attempt
		case state.GetUp() && unconnected():
			connected = true
			go func() {
				used <- use(ctx, state, l)
				cancel()
			}()
		case !state.GetUp():
			reason = state.GetReason()
			cancel()
		}
	})
	if connected {
		err = errors.Join(err, <-used)
	} else if err == nil {
		err = errors.New(cmp.Or(reason, "interrupted"))
	}
	return errors.Join(err, l.Close())
}
