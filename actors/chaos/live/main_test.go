package live

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// player is an actor of the tests: it counts its messages.
type player struct{ heard *heard }

// heard counts the messages of all players.
type heard struct {
	mu     sync.Mutex
	got    map[string]int // by path
	events []*messages.Event
}

func (h *heard) of(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got[path]
}

// journalled returns the events of the journal.
func (h *heard) journalled() []*messages.Event {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*messages.Event(nil), h.events...)
}

func (p *player) Start(c *runtime.Context) { c.Ready() }
func (*player) Stop(*runtime.Context)      {}
func (p *player) Receive(c *runtime.Context, msg any) {
	p.heard.mu.Lock()
	defer p.heard.mu.Unlock()
	p.heard.got[c.Path()]++
	if e, ok := msg.(*messages.Event); ok {
		p.heard.events = append(p.heard.events, e)
	}
}

// theatre is a small tree with the paths of the agent, a Live, and a World whose answers a test
// sets.
type theatre struct {
	*Live
	sys   *runtime.System
	heard *heard

	mu       sync.Mutex
	ready    bool
	services []Service
	lacks    []string // the answer of Diff
	blind    error    // the error of Diff and Services
	usage    link.Usage
	changes  uint64
}

// play runs a test with a theatre in virtual time.
func play(t *testing.T, test func(t *testing.T, th *theatre)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		th := &theatre{heard: &heard{got: map[string]int{}}, ready: true, services: []Service{
			{Key: "shop/a", Generation: 1, State: "in-sync"}, {Key: "shop/b", Generation: 1, State: "not-served"}, {Key: "shop/c", Generation: 1, State: "in-sync"},
		}}
		th.Live = New(Config{World: th, Log: slog.New(slog.DiscardHandler)})
		th.sys = runtime.NewSystem(runtime.Options{Faults: th.Fault, Network: th.Network, OnFatal: func(why string) { t.Errorf("fatal: %s", why) }})
		th.Attach(th.sys)
		if _, err := th.sys.SpawnRoot(address.RootName, th.tree()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		th.sys.Send(th.sys.PID(address.Services), &messages.Ensure{Keys: []string{"shop/a", "shop/b", "shop/c"}})
		synctest.Wait()
		test(t, th)
		if err := th.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := th.sys.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func (th *theatre) tree() runtime.Spec {
	one := func(kind string) runtime.Child {
		return runtime.Child{Name: kind, Spec: runtime.Spec{Kind: kind, New: func() runtime.Behaviour { return &player{th.heard} }}, Reaction: runtime.ReactNone}
	}
	policy := runtime.Policy{Budget: 10, Window: 10 * time.Second, BackoffMax: 500 * time.Millisecond}
	services := runtime.Dynamic("services", func(string) runtime.Spec { return one("service").Spec }, runtime.Policy{})
	return runtime.Ordered("root", []runtime.Child{
		one("journal"),
		{Name: "dataplane", Spec: runtime.Ordered("dataplane", []runtime.Child{one("nat44"), one("audit")}, policy), Reaction: runtime.ReactNone},
		{Name: "world", Spec: runtime.Ordered("world", []runtime.Child{one("registry"), {Name: "services", Spec: services, Reaction: runtime.ReactNone}}, policy), Reaction: runtime.ReactNone},
	}, policy)
}

// send sends messages to an actor and lets them arrive.
func (th *theatre) send(path string, msgs ...any) {
	for _, m := range msgs {
		th.sys.Send(th.sys.PID(path), m)
	}
	synctest.Wait()
}

// state reads one actor.
func (th *theatre) state(t *testing.T, path string) runtime.ActorState {
	t.Helper()
	state, ok := th.sys.Actor(path)
	if !ok {
		t.Fatalf("no %s", path)
	}
	return state
}

// must injects a fault.
func (th *theatre) must(t *testing.T, f Fault) Record {
	t.Helper()
	r, err := th.Inject(t.Context(), "a test", f)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return r
}

// record reads the present record of a fault.
func (th *theatre) record(t *testing.T, id uint64) Record {
	t.Helper()
	status := th.Status()
	r := status.Find(id)
	if r == nil {
		t.Fatalf("no record %d in %+v", id, status)
	}
	return *r
}

// change modifies the answers of the world.
func (th *theatre) change(modify func()) {
	th.mu.Lock()
	defer th.mu.Unlock()
	modify()
}

func (th *theatre) Readiness() (bool, string) {
	th.mu.Lock()
	defer th.mu.Unlock()
	if th.ready {
		return true, ""
	}
	return false, "nat44: unwell"
}

func (th *theatre) Services(context.Context) ([]Service, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return append([]Service{}, th.services...), th.blind
}

func (th *theatre) Diff(context.Context) ([]string, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.lacks, th.blind
}

func (th *theatre) Usage() link.Usage {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.usage
}

func (th *theatre) Changes() uint64 {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.changes
}

var errBlind = errors.New("no answer")
