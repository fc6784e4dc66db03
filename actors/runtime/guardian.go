package runtime

import (
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// The restart budget of all root actors together.
const (
	rootBudget = 20
	rootWindow = 10 * time.Second
)

// guardian supervises root actors. protoactor's own strategies crash the process or stop the actor
// silently in this place (pitfalls P9, P10).
type guardian struct {
	sys  *System
	once sync.Once

	mu       sync.Mutex
	failures window
}

var _ actor.SupervisorStrategy = (*guardian)(nil)

// HandleFailure satisfies actor.SupervisorStrategy. It restarts at once; beyond the budget the
// actor stays suspended. protoactor calls it in the goroutine of the failing actor, so that it may
// run several times at once.
func (g *guardian) HandleFailure(
	_ *actor.ActorSystem, _ actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any,
) {
	box := g.sys.lookup(child.GetId())
	f, ok := reason.(*Failure)
	if box == nil || !ok {
		return // not an actor of this package
	}
	// One budget for all root actors, because OnFatal concerns the process.
	g.mu.Lock()
	exceeded := g.failures.add(g.sys.clock.Now(), rootWindow) > rootBudget
	g.mu.Unlock()
	if exceeded {
		g.sys.report(box, f, decisionFatal)
		g.fatal(fmt.Sprintf("root actor %s failed more than %d times in %v: %v", box.Path(), rootBudget, rootWindow, f))
		return
	}
	g.sys.report(box, f, decisionRestart)
	box.restart()
}

// fatal calls Options.OnFatal once.
func (g *guardian) fatal(reason string) {
	g.once.Do(func() {
		g.sys.log.Error("actor system has failed", "err", reason)
		if g.sys.options.OnFatal != nil {
			g.sys.options.OnFatal(reason)
		}
	})
}
