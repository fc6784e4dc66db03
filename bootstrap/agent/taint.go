package agent

import (
	"context"
	"time"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// Pauses before the next attempt to remove the start-up taint: until the agent is ready, and after
// a failure.
const (
	taintPoll  = time.Second
	taintRetry = 10 * time.Second
)

// removeTaint removes the start-up taint from this node when the agent is ready for the first time.
// It does not add it again, because a node that was ready keeps its pods.
func (a *Agent) removeTaint(client *apiserver.Client) {
	key := a.cfg.Kubernetes.StartupTaint
	if key == "" || client == nil {
		return
	}
	a.own("removal of the start-up taint", func(ctx context.Context) error {
		said := false
		for {
			pause := taintPoll
			if a.readiness.Load().Ready {
				removed, err := client.RemoveTaint(ctx, a.cfg.NodeName, key)
				if err == nil {
					a.log.Info("pods may run on this node", "taint", key, "removed", removed)
					return nil
				}
				if !said && ctx.Err() == nil {
					a.log.Warn("cannot remove the start-up taint, retrying", "err", err)
					said = true
				}
				pause = taintRetry
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
		}
	})
}
