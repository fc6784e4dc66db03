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
func withVPP(ctx context.Context, socket string, use func(context.Context, *messages.LinkState, link.Caller) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	link.Quiet(log)
	l := link.New(link.Config{Socket: socket}, log)
	used := make(chan error, 1)
	reports, connected, reason := 0, false, ""
	err := l.Run(ctx, func(state *messages.LinkState) {
		switch reports++; {
		case connected || reason != "" || reports == 1:
			// the first report comes before the first attempt
		case state.GetUp():
			connected = true
			go func() {
				used <- use(ctx, state, l)
				cancel()
			}()
		default:
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
