package live

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Config holds the dependencies and settings of a Live.
type Config struct {
	// World is the agent under test.
	World World
	// Log receives the audit record; never nil.
	Log *slog.Logger
	// Quiet is the time without problems after which the agent counts as well; 0 = 1.5 s,
	// longer than the interval of half-open probes.
	Quiet time.Duration
	// Recovery is the time that the agent has to be well again after a fault; 0 = 45 s, longer
	// than a quarantine.
	Recovery time.Duration
}

// Live injects faults and keeps their audit record. The hooks of its Policy are options of a
// System, which does not exist yet at New: Attach hands it over.
type Live struct {
	Policy
	cfg    Config
	system *runtime.System // set by Attach, before the first request
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // goroutines of faults and runs

	mu      sync.Mutex // guards the following
	closed  bool
	last    uint64 // ID of the latest fault
	records []*Record
	active  map[uint64]*active
	healing int // faults that have ended and whose outcome is open
	run     *run
	runs    uint64
}

// active is a fault that has not ended.
type active struct {
	*armed
	record *Record
	box    *runtime.Mailbox // of the actor when the fault began; nil = the fault has no actor
	ended  chan struct{}    // closed at the end
	began  baseline
}

// baseline is the state of the agent before a fault, with which the outcome is compared: a fault is
// not blamed for older problems.
type baseline struct {
	complaints    map[string]string
	incarnation   uint64
	writes, reads uint64
}

// New returns a Live that is not attached yet.
func New(cfg Config) *Live {
	if cfg.Quiet == 0 {
		cfg.Quiet = 1500 * time.Millisecond
	}
	if cfg.Recovery == 0 {
		cfg.Recovery = 45 * time.Second
	}
	l := &Live{cfg: cfg, active: map[uint64]*active{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Attach sets the system whose options have the hooks of the policy. It must be called once, before
// any other method.
func (l *Live) Attach(s *runtime.System) { l.system = s }

// Close ends every fault and waits, until ctx ends, for the goroutines that observe outcomes.
func (l *Live) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.Stop("the end of the agent")
	l.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.tasks.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Inject begins a fault and returns its record as it is now. The fault ends after Fault.For at the
// latest, even if the client is gone by then.
func (l *Live) Inject(ctx context.Context, who string, f Fault) (Record, error) {
	return l.inject(ctx, who, f, 0)
}

// refused records a request that was refused, and returns the reason unchanged.
func (l *Live) refused(who string, f Fault, err error) error {
	l.cfg.Log.Warn("chaos fault refused", "actor", f.Actor, "fault", f.String(), "who", who, "err", err)
	l.journal(f.Actor, "", fmt.Sprintf("%s refused, asked for by %s", f, who), err.Error())
	return err
}

// inject begins a fault of a run, 0 = of none. It takes the baseline before the fault and without
// the lock, because queries take time.
func (l *Live) inject(ctx context.Context, who string, f Fault, run uint64) (Record, error) {
	if err := f.Check(); err != nil {
		return Record{}, err
	}
	f = f.complete()
	box, err := l.target(f)
	if err != nil {
		return Record{}, l.refused(who, f, err)
	}
	usage := l.cfg.World.Usage()
	began := baseline{complaints: complaints(ctx, l.cfg.World), writes: usage.Writes, reads: usage.RowReads}
	if box != nil {
		began.incarnation = box.State().Incarnation
	}
	record, err := l.admit(who, f, run, box, began)
	if err != nil {
		return Record{}, l.refused(who, f, err)
	}
	l.cfg.Log.Warn("chaos fault injected", "id", record.ID, "actor", record.Actor, "fault", f.String(), "who", who)
	l.journal(record.Actor, fmt.Sprintf("chaos/%d", record.ID), fmt.Sprintf("#%d %s, by %s", record.ID, record.What, who), "")
	return record, nil
}

// target finds the actor of a fault, nil if the kind needs none, and refuses exempt ones.
func (l *Live) target(f Fault) (*runtime.Mailbox, error) {
	d := Lookup(f.Kind)
	if !d.NeedsActor {
		return nil, nil
	}
	refuse := func(name, why string) error {
		return fmt.Errorf("%s %s: %w", f.Kind, name, &reasoned{ErrExempt, why})
	}
	if why := exempt(f.Actor); why != "" {
		return nil, refuse(f.Actor, why)
	}
	box, err := l.resolve(f.Actor)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.Kind, err)
	case exempt(box.Path()) != "":
		return nil, refuse(box.Path(), exempt(box.Path()))
	case !d.supervisors && l.supervisors()[box.Path()]:
		return nil, refuse(box.Path(), fmt.Sprintf("a supervisor is exempt from %s: kill it, or choose one of its children", f.Kind))
	}
	return box, nil
}

// supervisors are the paths of actors with children, and the path of the supervisor of services,
// which may have none.
func (l *Live) supervisors() map[string]bool {
	paths := map[string]bool{address.Services: true}
	for _, a := range l.system.Snapshot() {
		paths[a.Parent] = true
	}
	return paths
}

// reasoned is an error of a class with a text of its own.
type reasoned struct {
	class error
	why   string
}

func (e *reasoned) Error() string        { return e.why }
func (e *reasoned) Is(target error) bool { return target == e.class }

// resolve finds an actor by its name (address.Named).
func (l *Live) resolve(name string) (*runtime.Mailbox, error) {
	found := address.Named(name, l.system.Snapshot(), func(s runtime.ActorState) string { return s.Path })
	if len(found) > 1 {
		return nil, fmt.Errorf("%s: %w: the name is ambiguous: %s", name, ErrNoActor, strings.Join(found, ", "))
	}
	if len(found) == 1 {
		if box, ok := l.system.Mailbox(found[0]); ok {
			return box, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, ErrNoActor)
}

// admit enters a fault into the audit record and begins it, within the limits. It returns a copy of
// the record.
func (l *Live) admit(who string, f Fault, run uint64, box *runtime.Mailbox, began baseline) (Record, error) {
	path := ""
	if box != nil {
		path = box.Path()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.tooMuch(f, path); err != nil {
		return Record{}, refusal(f, path, err)
	}
	now := time.Now()
	record := &Record{ID: l.last + 1, Who: who, What: f, Actor: path, Began: now, State: StateActive, Run: run}
	if f.For > 0 {
		record.Until = now.Add(time.Duration(f.For))
	}
	a := &active{armed: newArmed(record.ID, f, path, uint64(now.UnixNano())), record: record, box: box, ended: make(chan struct{}), began: began}
	if err := l.begin(a); err != nil {
		return Record{}, refusal(f, path, err)
	}
	l.last++
	l.records = append(l.records, record)
	if len(l.records) > keptRecords {
		l.records = slices.Delete(l.records, 0, len(l.records)-keptRecords)
	}
	l.active[record.ID] = a
	if !a.def.Lasts() {
		l.end(a, "done")
	}
	l.tasks.Go(func() { // each fault has a goroutine of its own, which outlives the request
		l.await(a)
		l.conclude(a, l.watch(a))
	})
	return *record, nil
}

// refusal adds the fault to the reason.
func refusal(f Fault, path string, err error) error {
	return fmt.Errorf("%s: %w", strings.TrimSpace(string(f.Kind)+" "+path), err)
}

// tooMuch says why a fault exceeds a limit; the lock is held.
func (l *Live) tooMuch(f Fault, path string) error {
	if l.closed {
		return ErrClosed
	}
	for _, other := range l.active {
		if other.path == path && other.Kind == f.Kind {
			return &reasoned{ErrBusy, fmt.Sprintf("fault #%d of this kind is active until %s", other.id, other.record.Until.UTC().Format(time.TimeOnly))}
		}
	}
	if len(l.active) >= MostFaults {
		return &reasoned{ErrLimit, fmt.Sprintf("limit: %d faults are active, no more are allowed at the same time", MostFaults)}
	}
	if Lookup(f.Kind).kills(&f) && !l.limiter.allow(path, time.Now()) {
		why := fmt.Sprintf("limit: %d failures were injected below its supervisor within %v, more could exhaust its restart budget", mostFailures, failureWindow)
		return &reasoned{ErrLimit, why}
	}
	return nil
}

// begin injects a fault; the lock is held.
func (l *Live) begin(a *active) error {
	if a.def.inject != nil {
		if err := a.def.inject(l, a); err != nil {
			return err
		}
	}
	if !a.def.kills(&a.Fault) {
		return nil
	}
	err := l.system.Kill(a.path)
	if err != nil && a.def.end != nil {
		a.def.end(l, a)
	}
	return err
}

// end takes the effect of a fault away; the lock is held. The second time it does nothing.
func (l *Live) end(a *active, by string) {
	if l.active[a.id] != a {
		return
	}
	delete(l.active, a.id)
	l.healing++
	a.struck.Store(a.count()) // before the effect goes: messages that waited have arrived after it
	if a.def.end != nil {
		a.def.end(l, a)
		_ = l.system.ResetBackoff(a.path) // the actor may be gone
	}
	a.record.Ended, a.record.EndedBy, a.record.State, a.record.Struck = time.Now(), by, StateRecovering, a.struck.Load()
	close(a.ended)
}

// count returns the failures or messages that the fault has cost so far.
func (a *active) count() uint64 {
	if a.def.struck != nil {
		return a.def.struck(a)
	}
	return a.struck.Load()
}

// Stop ends every fault at once, and the run that injects them. It returns the number of faults
// that it ended.
func (l *Live) Stop(who string) int {
	l.mu.Lock()
	l.clear() // first, so that no fault strikes while the others end
	stopped := len(l.active)
	for _, a := range l.active {
		l.end(a, "stopped by "+who)
	}
	running := l.run != nil && l.run.halt(who)
	l.mu.Unlock()
	if stopped > 0 || running {
		l.cfg.Log.Warn("all chaos faults stopped", "faults", stopped, "who", who)
		l.journal(address.RootName, "", fmt.Sprintf("all chaos stopped: %d faults, by %s", stopped, who), "")
	}
	return stopped
}

// Status returns the state of all faults and of the latest run.
func (l *Live) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{Enabled: true, Active: len(l.active), Records: make([]Record, 0, len(l.records))}
	for _, r := range slices.Backward(l.records) {
		one := *r
		if a := l.active[r.ID]; a != nil {
			one.Struck = a.count()
		}
		s.Records = append(s.Records, one)
	}
	if l.run != nil {
		s.Run = l.run.status()
	}
	return s
}

// journal writes an entry of the audit record.
func (l *Live) journal(actor, object, text, problem string) {
	l.system.Send(l.system.PID(address.Journal), &messages.Event{Kind: "drill", Actor: actor, Object: object, Text: text, Error: problem})
}
