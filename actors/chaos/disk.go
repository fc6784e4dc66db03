package chaos

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/mirror"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// Place and origin of the local mirror.
const (
	mirrorDir    = "/var/lib/troupe"
	mirrorOrigin = "kubernetes"
)

// mirrored puts the local mirror in front of a source, as the agent does. The disk outlives the
// process.
func (w *world) mirrored(s kube.Source) kube.Source {
	config := mirror.Config{Node: thisNode, Origin: mirrorOrigin, Observer: mirrorObserver{w.injector}, Now: w.sim.Now}
	config.After = func(d time.Duration, f func()) func() bool { return w.sim.AfterFunc(d, f).Stop }
	return mirror.New(s, mirror.NewStore(mirrorDir, w.disk), config, slog.New(slog.DiscardHandler))
}

// mirrorObserver counts events of the mirror.
type mirrorObserver struct{ *injector }

// MirrorServing satisfies mirror.Observer.
func (o mirrorObserver) MirrorServing(on bool) {
	if on {
		o.count("mirror served")
	}
}

// MirrorSaved satisfies mirror.Observer.
func (mirrorObserver) MirrorSaved(time.Time) {}

// MirrorNotSaved satisfies mirror.Observer.
func (o mirrorObserver) MirrorNotSaved(string) { o.count("mirror not saved") }

// provisional are the rows that were removed while the services came from the local mirror alone.
// There must be none, because a service may exist that the mirror does not have (I17).
type provisional map[frontend]bool

// changed notes a change of a row.
func (p provisional) changed(c virtual.RowChange) {
	switch {
	case c.Backend.IsValid():
	case c.Added:
		delete(p, c.At) // the row was replaced
	default:
		p[c.At] = true
	}
}

// listed reports the rows that were removed before the source has listed the cluster.
func (w *world) listed() {
	for at := range w.provisional {
		w.breach("I17: %s was removed before the source had delivered", at)
	}
	clear(w.provisional)
}

// replace ends the agent and starts another one, as an update does. VPP keeps its state, and the
// cluster changes meanwhile. A killed process does not complete a save of the mirror.
func (w *world) replace(r *rand.Rand, killed bool) {
	if err := w.sys.Shutdown(context.Background()); err != nil {
		w.breach("I9: %v", err)
	}
	if killed {
		const steps = 12 // of a save on the disk
		w.disk.Dies, w.disk.Stop = true, w.disk.Step+1+r.IntN(steps)
	}
	w.endSource()
	w.repairDisk()
	w.vpp.Disconnect("injected: the agent ended")
	for range r.IntN(4) {
		w.cluster.mutate(r, false)
	}
	w.vpp.Connect()
	if err := w.start(); err != nil {
		w.breach("%v", err)
	}
}

// restart replaces the agent; the API server answers at once.
func (w *world) restart(r *rand.Rand) { w.replace(r, r.IntN(2) == 0) }

// restartAlone replaces the agent while the API server is down or slow: the mirror serves first.
func (w *world) restartAlone(r *rand.Rand) {
	w.replace(r, r.IntN(2) == 0)
	const outage = 9 // seconds; longer than the grace of the mirror
	if r.IntN(2) == 0 {
		w.source.slow = seconds(r, outage)
		w.later(w.source.slow, func() { w.source.slow = 0 })
		return
	}
	w.blind(r, outage)
	w.later(seconds(r, outage), func() { w.cluster.erase(r) })
}

// reboot restarts the machine: VPP and the agent begin anew, and the disk loses unsynced changes.
func (w *world) reboot(r *rand.Rand) {
	const changes = 4
	w.disk = w.disk.Rebooted(r.IntN(changes), r.Float64())
	w.crashVPP(r)
	w.replace(r, true)
}

// repairDisk ends the failures of the disk.
func (w *world) repairDisk() { w.disk.Killed().Dies = false }
