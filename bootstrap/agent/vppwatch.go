package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// replacedPoll is the interval at which the directory of VPP's socket is checked, and the lock in
// it.
const replacedPoll = 2 * time.Second

// vppWatch sees each state of the connection to VPP before the actors do. It counts connections,
// writes Events at the Node, and ends the process in two cases that the process cannot repair:
// another agent uses this VPP, or the directory of the socket was replaced.
type vppWatch struct {
	link.Runner
	agent *Agent
	// socket is the path of VPP's API socket.
	socket string
	log    *slog.Logger
	// up is true while VPP is connected.
	up atomic.Bool
	// claiming is held while the lock of VPP is taken: Run and watchDirectory take it.
	claiming sync.Mutex
	// known is true after the first connection, lost after its end. Both belong to Run.
	known, lost bool
}

// watchVPP returns a link that passes its states through a vppWatch.
func (a *Agent) watchVPP(socket string, l link.Runner) link.Runner {
	w := &vppWatch{Runner: l, agent: a, socket: socket, log: a.log.With("part", "link")}
	a.own("watch of VPP's directory", w.watchDirectory)
	return w
}

func (w *vppWatch) Run(ctx context.Context, on func(*messages.LinkState)) error {
	return w.Runner.Run(ctx, func(state *messages.LinkState) {
		if err := w.seen(ctx, state); err != nil {
			// without the state the renderers write nothing to this VPP
			w.log.Error("VPP is not used", "err", err)
			w.agent.fail(err)
			return
		}
		if state.GetUp() && !w.agent.chosen(ctx, w.Runner) {
			return
		}
		on(state)
	})
}

// seen handles a state of the connection. An error means that this agent must not use the VPP.
func (w *vppWatch) seen(ctx context.Context, state *messages.LinkState) error {
	w.up.Store(state.GetUp())
	node, record := w.agent.cfg.NodeName, w.agent.events.Record
	switch {
	case state.GetUp():
		if err := w.claim(); err != nil {
			return err
		}
		w.agent.metrics.VPPConnected()
		if w.lost {
			record(events.VPPConnected(node, state.GetVersion()))
		}
		w.known, w.lost = true, false
	case w.known && !w.lost && ctx.Err() == nil:
		w.lost = true
		w.log.Warn("VPP is lost: nothing is programmed until it is back", "reason", state.GetReason())
		record(events.VPPLost(node, state.GetReason()))
	}
	return nil
}

// claim takes the lock beside VPP's socket, at each connection: another VPP may have another
// directory. Without a lock a second agent would not be noticed, so that VPP is not used.
func (w *vppWatch) claim() error {
	w.claiming.Lock()
	defer w.claiming.Unlock()
	path := lockOf(w.socket)
	held := w.agent.vppLock.Load()
	if held != nil && held.at(path) {
		return nil
	}
	l, err := takeLock(path, agentOf(w.agent.cfg.NodeName))
	switch {
	case errors.Is(err, errLocked):
		return fmt.Errorf("vpp.apiSocket: another agent programs the VPP at %s: %w", w.socket, err)
	case err != nil:
		return fmt.Errorf("vpp.apiSocket: cannot lock the VPP at %s, so that a second agent would not be noticed: "+
			"give the agent the right to write there (with systemd: ReadWritePaths): %w", w.socket, err)
	}
	w.agent.vppLock.Store(l)
	return held.release()
}

// keepClaim takes the lock again while VPP is connected, if its file was removed or replaced:
// another agent could take the new one.
func (w *vppWatch) keepClaim() error {
	if held := w.agent.vppLock.Load(); !w.up.Load() || held == nil || held.at(lockOf(w.socket)) {
		return nil
	}
	return w.claim()
}

// watchDirectory ends the process when the directory of VPP's socket was removed. In a pod the
// mount still shows the removed directory, so this process would never see a VPP that starts again.
func (w *vppWatch) watchDirectory(ctx context.Context) error {
	ticker := time.NewTicker(replacedPoll)
	defer ticker.Stop()
	dir := filepath.Dir(w.socket)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := w.keepClaim(); err != nil {
			w.log.Error("VPP is not used any more", "err", err)
			w.agent.fail(err)
			return nil
		}
		if w.up.Load() || !removed(dir) {
			continue
		}
		err := fmt.Errorf("directory %s of vpp.apiSocket was replaced on the node: this process sees only the removed one, a new one is needed "+
			"(with systemd set RuntimeDirectoryPreserve=yes in VPP's unit)", dir)
		w.log.Error("VPP cannot be reached any more", "err", err)
		w.agent.events.Record(events.VPPLost(w.agent.cfg.NodeName, err.Error()))
		w.agent.fail(err)
		return nil
	}
}

// removed reports whether a directory has no link any more.
func removed(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
