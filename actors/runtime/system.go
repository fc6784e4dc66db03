package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// throughput is a parameter of protoactor's own mailboxes; Mailbox uses burst instead.
const throughput = 300

// Options configures a System. The zero value is usable.
type Options struct {
	// Logger gets failures as warnings; nil = silence.
	Logger *slog.Logger
	// Clock is the time for everything; nil = RealClock.
	Clock Clock
	// Scheduler runs the mailboxes; nil = protoactor's dispatcher, one goroutine for each busy
	// actor. See Sim.
	Scheduler Scheduler
	// Go starts the functions of Context.Go; nil = a goroutine each, or with a Scheduler a
	// failure of the actor with ErrNoGoroutines.
	Go func(path, name string, run func())
	// Faults is called around every user message and at both ends of an incarnation; nil =
	// never.
	Faults FaultHook
	// Network decides about every user message on its way; nil = all of them arrive, at once
	// and in order.
	Network NetworkHook
	// OnFault is called for every failure after the supervisor's decision. It must not block;
	// it is called from actors.
	OnFault func(*messages.Fault)
	// OnFatal is called at most once, when the root actor has failed too often (20 times in 10
	// s) or has stopped outside of Shutdown. The process should end. It must not block and must
	// not call Shutdown on the same goroutine.
	OnFatal func(reason string)
	// Seed makes everything random repeatable: jitter and Context.Rand.
	Seed uint64
}

// System is a tree of actors. All methods are safe for concurrent use.
type System struct {
	// Constant after NewSystem.
	options    Options
	log        *slog.Logger
	clock      Clock
	epoch      time.Time
	background context.Context // ends with Shutdown; every context of an incarnation is below it
	cancel     context.CancelFunc
	proto      *actor.ActorSystem
	props      *actor.Props // of every actor but roots
	dispatcher actor.Dispatcher
	guardian   *guardian
	observer   func(path, event string) // of tests, set before the first actor

	lists   *lists
	letters deadLetters
	traffic sync.Map // by kind: *traffic

	mu       sync.Mutex // guards the following
	boxes    map[string]*Mailbox
	spawning map[string]spawnRequest // by path
	// last incarnation of stopped Ordered children; bounded by the names in the code
	numbers  map[string]uint64
	routines map[*routine]struct{}
	closing  bool
	empty    chan struct{} // closed when closing and neither actors nor goroutines are left
	leaving  chan struct{} // the same for StopRoots; nil = it is not under way
}

// spawnRequest says what to make at a path. The mailbox fetches it in RegisterHandlers, because
// protoactor's Props are shared.
type spawnRequest struct {
	spec        Spec
	incarnation uint64
	barrier     bool
}

// NewSystem makes a system without actors.
func NewSystem(o Options) *System {
	s := &System{
		options: o, log: o.Logger, clock: o.Clock, dispatcher: actor.NewDefaultDispatcher(throughput),
		boxes: map[string]*Mailbox{}, spawning: map[string]spawnRequest{}, numbers: map[string]uint64{}, routines: map[*routine]struct{}{},
		lists: &lists{}, empty: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = RealClock()
	}
	// Mailboxes keep instants as nanoseconds since here, which take a third of the memory of a
	// time.Time.
	s.epoch = s.clock.Now()
	s.background, s.cancel = context.WithCancel(context.Background())
	s.guardian = &guardian{sys: s}
	s.proto = actor.NewActorSystem(quietLogging(s.log))
	s.shrinkRegistry()
	s.replaceEventStream()
	s.props = s.newProps()
	return s
}

// shrinkRegistry leaves one of the 1024 buckets to protoactor's registry. Each bucket has 32 maps,
// and an entry of a map takes the room of eight: empty, all buckets take 3 MB. The processes stay,
// because nothing else knows the system yet.
func (s *System) shrinkRegistry() {
	buckets := &s.proto.ProcessRegistry.LocalPIDs.LocalPIDs
	first := (*buckets)[0]
	for _, bucket := range (*buckets)[1:] {
		first.MSet(bucket.Items())
	}
	*buckets = append((*buckets)[:0:0], first)
}

// newProps makes protoactor's properties. All children share one value; what differs between them
// is in spawning.
func (s *System) newProps(options ...actor.PropsOption) *actor.Props {
	options = append(options, actor.WithMailbox(func() actor.Mailbox { return &Mailbox{sys: s} }), actor.WithDispatcher(s.dispatcher))
	return actor.PropsFromProducer(func() actor.Actor { return &adapter{sys: s} }, options...)
}

// nanos is the age of the system, the unit of instants in mailboxes.
func (s *System) nanos() int64 {
	if _, ok := s.clock.(realClock); ok {
		return int64(time.Since(s.epoch)) // reads the monotonic clock only
	}
	return int64(s.clock.Now().Sub(s.epoch))
}

// SpawnRoot starts a root actor; normally there is one. A failure restarts it, more than 20 in 10 s
// call Options.OnFatal.
func (s *System) SpawnRoot(name string, spec Spec) (*actor.PID, error) {
	path := EscapeName(name)
	props := s.newProps(actor.WithGuardian(s.guardian))
	box, err := s.spawn(path, spawnRequest{spec: spec}, func() (*actor.PID, error) { return s.proto.Root.SpawnNamed(props, path) })
	if err != nil {
		return nil, fmt.Errorf("spawn root %s: %w", name, err)
	}
	return box.pid, nil
}

// spawnChild starts a child of the actor of c.
func (s *System) spawnChild(c *Context, name string, r spawnRequest) (*Mailbox, error) {
	path := childPath(c, name)
	if c.over() { // pitfall P1
		return nil, fmt.Errorf("spawn %s: %w", path, ErrDown)
	}
	box, err := s.spawn(path, r, func() (*actor.PID, error) { return c.ac.SpawnNamed(s.props, EscapeName(name)) })
	if err != nil {
		return nil, fmt.Errorf("spawn %s: %w", path, err)
	}
	return box, nil
}

// spawn prepares what RegisterHandlers needs and lets protoactor make the actor.
func (s *System) spawn(path string, r spawnRequest, spawn func() (*actor.PID, error)) (*Mailbox, error) {
	s.mu.Lock()
	_, exists := s.boxes[path]
	_, underway := s.spawning[path]
	switch {
	case s.closing:
		s.mu.Unlock()
		return nil, ErrShutdown
	case exists || underway:
		s.mu.Unlock()
		return nil, ErrNameExists
	}
	r.incarnation = max(r.incarnation, s.numbers[path]+1)
	s.spawning[path] = r
	s.mu.Unlock()
	// Without the lock: protoactor calls RegisterHandlers, which takes it.
	pid, err := spawn()
	if err != nil { // the name belongs to a process of protoactor
		s.mu.Lock()
		delete(s.spawning, path)
		s.settle()
		s.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", ErrNameExists, err)
	}
	return s.lookup(pid.GetId()), nil
}

// spawnRequest returns what to make at a path.
func (s *System) spawnRequest(path string) spawnRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spawning[path]
}

// register makes the mailbox of a new actor known. A root actor that meets a shutdown is stopped at
// once; others are by their parents.
func (s *System) register(b *Mailbox) {
	s.mu.Lock()
	delete(s.spawning, b.Path())
	s.boxes[b.Path()] = b
	late := s.closing && parentPath(b.Path()) == "" // Shutdown did not see it
	s.mu.Unlock()
	if late {
		b.stop()
	}
}

// unregister removes a stopped actor.
func (s *System) unregister(b *Mailbox) {
	number, fixed := b.lastIncarnation()
	s.mu.Lock()
	delete(s.boxes, b.Path())
	if fixed { // the numbers of an Ordered child go on when its supervisor is restarted
		s.numbers[b.Path()] = number
	}
	unasked := !s.closing && s.leaving == nil && parentPath(b.Path()) == ""
	s.settle()
	s.mu.Unlock()
	if unasked { // pitfall P10: protoactor would not report it
		s.guardian.fatal("root actor " + b.Path() + " has stopped")
	}
}

// lookup finds the mailbox of a path; nil = there is none.
func (s *System) lookup(path string) *Mailbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.boxes[path]
}

// Send sends a message from outside of the actors. It never blocks and never fails; a message to no
// actor is counted as a dead letter. The message must not be modified any more.
func (s *System) Send(to *actor.PID, msg any) {
	if to == nil { // protoactor would panic
		s.undeliverable("", msg, "no such actor")
		return
	}
	s.proto.Root.Send(to, msg)
}

// PID addresses an actor by its path, whether it exists or not. For a living actor it is the
// actor's own PID, which is the fastest.
func (s *System) PID(path string) *actor.PID {
	if box := s.lookup(path); box != nil {
		return box.pid
	}
	return actor.NewPID(s.proto.Address(), path)
}

// observe reports to a test what a supervisor does.
func (s *System) observe(path, event string) {
	if s.observer != nil {
		s.observer(path, event)
	}
}

// quietHandler passes on what protoactor logs from warnings upwards: it logs every failure and
// every dead letter at Info, and the runtime reports them itself.
type quietHandler struct{ slog.Handler }

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}

// quietLogging gives protoactor the logger of the System instead of its own on stderr.
func quietLogging(log *slog.Logger) actor.ConfigOption {
	quiet := slog.New(quietHandler{log.Handler()})
	return actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet })
}

// Clock is the time of the runtime and the actors. RealClock is for production and for
// testing/synctest bubbles, Sim for simulations.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc calls f once, d from now, on any goroutine. f must only send messages.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of Clock.AfterFunc.
type Timer interface {
	// Stop prevents the call. It reports false when the call has begun, has been made or was
	// stopped before.
	Stop() bool
}

// RealClock is the clock of package time.
func RealClock() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

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
