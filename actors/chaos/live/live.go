package live

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Config says what a Live works with.
type Config struct {
	// World is the agent that the faults happen to.
	World World
	// Log gets the audit record; never nil.
	Log *slog.Logger
	// Quiet is how long all must be well until it counts; 0 = 1.5 s, longer than actors take to repeat themselves.
	Quiet time.Duration
	// Recovery is how long the agent may take to be well again; 0 = 45 s, longer than a quarantine.
	Recovery time.Duration
}

// Live is the desk of live chaos. Its Policy goes into the options of a System before that is made, then Attach hands the System over.
type Live struct {
	Policy
	cfg    Config
	system *runtime.System // set by Attach, before anybody can ask for anything
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex // guards the following
	closed  bool
	last    uint64 // ID
	records []*Record
	active  map[uint64]*active
	healing int // faults that are over and being watched
	run     *run
	runs    uint64
}

// active is a fault that strikes.
type active struct {
	*armed
	record *Record
	box    *runtime.Mailbox // of the actor when the fault began; nil = the fault has no actor
	ended  chan struct{}    // closed when it is over
	began  baseline
}

// baseline is how things were before a fault.
type baseline struct {
	complaints    map[string]string
	incarnation   uint64
	writes, reads uint64
}

// New makes a desk that is not attached yet.
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

// Attach hands over the system whose hooks are those of the policy. It is called once, before anything else.
func (l *Live) Attach(s *runtime.System) { l.system = s }

// Close ends every fault and waits for what is being watched, as long as ctx allows.
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

// Inject lets a fault happen and returns its record as it is now. It is over at the latest after Fault.For, whoever asked for it.
func (l *Live) Inject(ctx context.Context, who string, f Fault) (Record, error) {
	return l.inject(ctx, who, f, 0)
}

// Refused writes down that somebody was refused what he asked for, and returns the reason as it came.
func (l *Live) refused(who string, f Fault, err error) error {
	l.cfg.Log.Warn("chaos refused", "actor", f.Actor, "fault", f.String(), "who", who, "err", err)
	l.journal(f.Actor, "", fmt.Sprintf("%s refused, asked for by %s", f, who), err.Error())
	return err
}

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
	a, err := l.admit(who, f, run, box, began)
	if err != nil {
		return Record{}, l.refused(who, f, err)
	}
	record := l.copyOf(a.record)
	l.cfg.Log.Warn("chaos", "id", record.ID, "actor", record.Actor, "fault", f.String(), "who", who)
	l.journal(record.Actor, fmt.Sprintf("chaos/%d", record.ID), record.line()+", by "+who, "")
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

// supervisors are the paths of those that have children, and of the one that may have none yet.
func (l *Live) supervisors() map[string]bool {
	paths := map[string]bool{actors.PathServices: true}
	for _, a := range l.system.Snapshot() {
		paths[a.Parent] = true
	}
	return paths
}

// reasoned is an error of a class with its own text.
type reasoned struct {
	class error
	why   string
}

func (e *reasoned) Error() string        { return e.why }
func (e *reasoned) Is(target error) bool { return target == e.class }

// resolve finds an actor by its path, by "namespace/name" of a service, or by the last part of its path.
func (l *Live) resolve(name string) (*runtime.Mailbox, error) {
	for _, path := range []string{name, actors.PathService(name)} {
		if box, ok := l.system.Mailbox(path); ok {
			return box, nil
		}
	}
	var found []string
	for _, state := range l.system.Snapshot() {
		if state.Kind != "service" && strings.HasSuffix(state.Path, "/"+name) {
			found = append(found, state.Path)
		}
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("%s: %w of that name alone: %s", name, ErrNoActor, strings.Join(found, ", "))
	}
	if len(found) == 1 {
		if box, ok := l.system.Mailbox(found[0]); ok {
			return box, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, ErrNoActor)
}

// admit enters a fault into the audit record and begins it, within the limits.
func (l *Live) admit(who string, f Fault, run uint64, box *runtime.Mailbox, began baseline) (*active, error) {
	path := ""
	if box != nil {
		path = box.Path()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.tooMuch(f, path); err != nil {
		return nil, refusal(f, path, err)
	}
	now := time.Now()
	record := &Record{ID: l.last + 1, Who: who, What: f, Actor: path, Began: now, State: StateActive, Run: run}
	if f.For > 0 {
		record.Until = now.Add(time.Duration(f.For))
	}
	a := &active{armed: newArmed(record.ID, f, path, uint64(now.UnixNano())), record: record, box: box, ended: make(chan struct{}), began: began}
	if err := l.begin(a); err != nil {
		return nil, refusal(f, path, err)
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
	l.tasks.Go(func() { l.attend(a) })
	return a, nil
}

// refusal says which fault was refused.
func refusal(f Fault, path string, err error) error {
	return fmt.Errorf("%s: %w", strings.TrimSpace(string(f.Kind)+" "+path), err)
}

// tooMuch says why a fault has to wait; the lock is held.
func (l *Live) tooMuch(f Fault, path string) error {
	if l.closed {
		return ErrClosed
	}
	for _, other := range l.active {
		if other.path == path && other.Kind == f.Kind {
			return &reasoned{ErrBusy, fmt.Sprintf("#%d does the same until %s", other.id, other.record.Until.UTC().Format(time.TimeOnly))}
		}
	}
	if len(l.active) >= MostFaults {
		return &reasoned{ErrLimit, fmt.Sprintf("limit: %d faults last already, more are too much at once", MostFaults)}
	}
	if Lookup(f.Kind).kills(&f) && !l.limiter.allow(path, time.Now()) {
		why := fmt.Sprintf("limit: %d failures were injected below its supervisor within %v, more would make it give up", mostFailures, failureWindow)
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
	}
	if a.def.quarantines {
		_ = l.system.Pardon(a.path) // the actor may be gone
	}
	a.record.Ended, a.record.EndedBy, a.record.State, a.record.Struck = time.Now(), by, StateRecovering, a.struck.Load()
	close(a.ended)
}

// count is what the fault has cost so far.
func (a *active) count() uint64 {
	if a.def.struck != nil {
		return a.def.struck(a)
	}
	return a.struck.Load()
}

// Stop ends every fault at once, and the run that chooses them. It returns how many faults that were.
func (l *Live) Stop(who string) int {
	l.mu.Lock()
	l.clear() // first of all: nothing strikes any more
	stopped := len(l.active)
	for _, a := range l.active {
		l.end(a, "stopped by "+who)
	}
	running := l.run != nil && l.run.halt(who)
	l.mu.Unlock()
	if stopped > 0 || running {
		l.cfg.Log.Warn("chaos stopped", "faults", stopped, "who", who)
		l.journal(actors.RootName, "", fmt.Sprintf("all chaos stopped: %d faults, by %s", stopped, who), "")
	}
	return stopped
}

// Status tells everything.
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

func (l *Live) copyOf(r *Record) Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *r
}

// journal writes an entry of the audit record.
func (l *Live) journal(actor, object, text, problem string) {
	l.system.Send(l.system.PID(actors.PathJournal), &messages.Event{Kind: "drill", Actor: actor, Object: object, Text: text, Error: problem})
}
