package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when everything in the fake began.
var start = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// troupe is a semantic Backend: a small agent with actors that can be suspended and killed, a journal that grows with what is done, and
// services.
type troupe struct {
	mu       sync.Mutex
	actors   map[string]*Actor
	journal  []Event // the oldest first
	services map[string]*ServiceDetail
	live     error
	ready    Readiness
	node     NodeHealth
	resyncs  int
	entered  chan struct{} // if set, Diff says that it was called
	block    chan struct{} // if set, Diff waits for it or for its context
	panics   bool          // Nodes panics
}

func newTroupe(services int) *troupe {
	t := &troupe{
		actors: map[string]*Actor{}, services: map[string]*ServiceDetail{},
		ready: Readiness{Ready: true, Since: start, Parts: []Part{{Name: "nat44", OK: true, Epoch: 1}, {Name: "watch", OK: true}}},
		node:  NodeHealth{LastUpdated: start, CurrentTime: start, Eligible: true, Healthy: true},
	}
	for _, path := range []string{"agent", "agent/dataplane", "agent/dataplane/nat44", "agent/world", "agent/world/services"} {
		t.actors[path] = &Actor{Path: path, Kind: path[strings.LastIndexByte(path, '/')+1:], State: "running", Incarnation: 1}
	}
	for i := range services {
		key := fmt.Sprintf("shop/service-%03d", i)
		path := "agent/world/services/" + strings.ReplaceAll(key, "/", "~")
		t.actors[path] = &Actor{Path: path, Kind: "service", State: "running", Incarnation: 1, Pending: uint64(i % 7), Received: uint64(i)}
		state := ServiceInSync
		if i%10 == 9 {
			state = ServiceFailed
		}
		t.services[key] = &ServiceDetail{Service: Service{Key: key, State: state, Generation: uint64(i), Changed: start}}
	}
	return t
}

func (t *troupe) record(e Event) {
	e.Seq = uint64(len(t.journal) + 1)
	e.Time = start.Add(time.Duration(e.Seq) * time.Second)
	t.journal = append(t.journal, e)
}

func (t *troupe) Live() error          { t.mu.Lock(); defer t.mu.Unlock(); return t.live }
func (t *troupe) Readiness() Readiness { t.mu.Lock(); defer t.mu.Unlock(); return t.ready }
func (t *troupe) Node() NodeHealth     { t.mu.Lock(); defer t.mu.Unlock(); return t.node }

func (t *troupe) Services(context.Context) ([]Service, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Service
	for _, s := range t.services {
		out = append(out, s.Service)
	}
	slices.SortFunc(out, func(a, b Service) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

func (t *troupe) Service(_ context.Context, key string) (*ServiceDetail, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.services[key]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("service %s: %w", key, ErrNotFound)
}

func (t *troupe) Interfaces(context.Context) (*Interfaces, error) {
	return nil, fmt.Errorf("%w: VPP is not connected", ErrUnavailable)
}

func (t *troupe) Nodes(context.Context) (*Nodes, error) {
	if t.panics {
		panic("nodes are on fire")
	}
	return &Nodes{Self: "a", Claim: "held", Connected: true, Items: []Node{{Name: "a", ID: 1}}}, nil
}

func (t *troupe) Actors(context.Context) ([]Actor, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Actor
	for _, a := range t.actors {
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b Actor) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

func (t *troupe) Actor(_ context.Context, path string) (*Actor, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.actors[path]; a != nil {
		one := *a
		return &one, nil
	}
	return nil, fmt.Errorf("actor %s: %w", path, ErrNotFound)
}

func (t *troupe) Mailbox(ctx context.Context, path string) (*Mailbox, error) {
	a, err := t.Actor(ctx, path)
	if err != nil {
		return nil, err
	}
	box := &Mailbox{Path: path, Held: a.State == "suspended", Pending: int(a.Pending), Messages: []Waiting{}}
	for range a.Pending {
		box.Messages = append(box.Messages, Waiting{Type: "*messages.Render"})
	}
	return box, nil
}

func (t *troupe) State(ctx context.Context, path string) (json.RawMessage, error) {
	a, err := t.Actor(ctx, path)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(fmt.Sprintf(`{"lives": %d}`, a.Incarnation)), nil
}

func (t *troupe) Failures(ctx context.Context, path string) ([]Failure, error) {
	a, err := t.Actor(ctx, path)
	if err != nil || a.Failures == 0 {
		return nil, err
	}
	return []Failure{{Time: start, Incarnation: a.Incarnation - 1, Reason: a.LastFailure, Decision: "restart"}}, nil
}

func (t *troupe) Events(_ context.Context, q EventQuery) (*EventPage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	page := &EventPage{Items: []Event{}}
	for _, e := range slices.Backward(t.journal) {
		if q.Before > 0 && e.Seq >= q.Before || q.Kind != "" && e.Kind != q.Kind || q.Object != "" && e.Object != q.Object {
			continue
		}
		if len(page.Items) == q.Limit {
			page.Next = page.Items[q.Limit-1].Seq
			break
		}
		page.Items = append(page.Items, e)
	}
	return page, nil
}

func (t *troupe) Resync(context.Context) (*Resync, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &Resync{Renderers: []RendererSync{{Renderer: "nat44", Epoch: uint64(1 + t.resyncs), InSync: true}}}, nil
}

func (t *troupe) Diff(ctx context.Context) (*Diff, error) {
	if t.entered != nil {
		close(t.entered)
	}
	if t.block != nil {
		select {
		case <-t.block:
		case <-ctx.Done():
			return nil, fmt.Errorf("read VPP: %w", ctx.Err())
		}
	}
	return &Diff{Renderers: []RendererDiff{{Renderer: "nat44", Operations: []string{}}}}, nil
}

func (t *troupe) StartResync(_ context.Context, r ResyncRequest) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resyncs++
	t.record(Event{Kind: "resync", Actor: "agent/healer", Text: r.Reason})
	return nil
}

func (t *troupe) Command(_ context.Context, path string, verb Verb) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.actors[path]
	if a == nil {
		return fmt.Errorf("actor %s: %w", path, ErrNotFound)
	}
	switch verb {
	case VerbSuspend:
		if a.State == "suspended" {
			return fmt.Errorf("actor %s: %w: it is suspended", path, ErrConflict)
		}
		a.State = "suspended"
	case VerbResume:
		a.State = "running"
	case VerbKill:
		a.Failures, a.Restarts, a.Incarnation, a.LastFailure = a.Failures+1, a.Restarts+1, a.Incarnation+1, "killed"
	default:
		return fmt.Errorf("%s: %w", verb, ErrUnsupported)
	}
	t.record(Event{Kind: "drill", Actor: path, Text: string(verb)})
	return nil
}

// agent is a Server that runs on real sockets until the test ends.
type agent struct {
	*troupe
	server  *Server
	tcp     *http.Client
	control *http.Client
	socket  string
	stop    func() error
}

func run(t *testing.T, backend *troupe, change func(*Config)) *agent {
	t.Helper()
	dir, err := os.MkdirTemp("", "api") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &agent{troupe: backend, socket: filepath.Join(dir, "control.sock")}
	cfg := Config{HTTPAddress: "127.0.0.1:0", ControlSocket: a.socket}
	if change != nil {
		change(&cfg)
	}
	a.server = New(backend, cfg, slog.New(slog.DiscardHandler))
	if err := a.server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.server.Serve(ctx) }()
	a.stop = sync.OnceValue(func() error { cancel(); return <-done })
	a.tcp = clientTo("tcp", a.server.Addr().String())
	a.control = clientTo("unix", a.socket)
	t.Cleanup(func() {
		if err := a.stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return a
}

// clientTo returns a client that connects to one place and keeps no connection.
func clientTo(network, address string) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
}

var errNoAnswer = errors.New("no answer")
