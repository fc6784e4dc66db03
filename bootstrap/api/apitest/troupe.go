package apitest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// Began is the start time of everything in a Troupe; each of its events is a second later than the
// one before.
var Began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// Troupe is a semantic Backend: actors that can be suspended and killed, a journal that grows with
// each operation, services with matching numbers. Its VPP is not connected and its interfaces are
// unknown until Uplink is set.
type Troupe struct {
	// Hooks change how it answers; set them before the first request.
	Hooks Hooks

	api.Dumped // what it has no method of its own for

	mu       sync.Mutex
	actors   []api.Actor // ordered by path
	services []api.Service
	details  map[string]*api.ServiceDetail
	journal  []api.Event // the oldest first
	live     error
	ready    api.Readiness
	read     time.Time // of the last resync
	resyncs  int
	drift    []string
	chaos    chaos
	external map[string][]byte
	asked    atomic.Int64 // for sessions
}

// Hooks make a Troupe slow or broken.
type Hooks struct {
	// Diff is called by Diff and may wait for its context.
	Diff func(ctx context.Context) error
	// Nodes is called by Nodes and may panic.
	Nodes func()
	// Uplink is the name of the only interface; "" = VPP is not connected.
	Uplink string
	// Node and Version of Status; "" = shop-a, v1.2.3.
	Node, Version string
}

var _ api.Backend = (*Troupe)(nil)

// New returns an agent with this many services, "shop/service-000" and so on; every tenth has
// failed.
func New(services int) *Troupe {
	t := &Troupe{
		details: map[string]*api.ServiceDetail{},
		ready:   api.Readiness{Ready: true, Since: Began, Parts: []api.Part{{Name: "nat44", OK: true, Epoch: 1}, {Name: "watch", OK: true}}},
	}
	t.Dumped = api.NewDumped(t.dump)
	for _, a := range []api.Actor{
		{Path: "agent"},
		{Path: "agent/dataplane", Strategy: "rest-for-one", Budget: 10, BudgetLeft: 9},
		{Path: "agent/dataplane/nat44"},
		{Path: "agent/world"},
		{Path: "agent/world/services", Strategy: "one-for-one", Budget: -1, BudgetLeft: -1},
	} {
		a.Kind, a.State, a.Incarnation = a.Path[strings.LastIndexByte(a.Path, '/')+1:], "running", 1
		t.actors = append(t.actors, a)
	}
	for i := range services {
		t.addService(i)
	}
	slices.SortFunc(t.services, func(a, b api.Service) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(t.actors, byPath)
	return t
}

// AddActor adds an actor that does nothing.
func (t *Troupe) AddActor(path, kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.actors = append(t.actors, api.Actor{Path: path, Kind: kind, State: "idle", Incarnation: 1})
	slices.SortFunc(t.actors, byPath)
}

func byPath(a, b api.Actor) int { return strings.Compare(a.Path, b.Path) }

// find returns an actor, nil if there is none; the caller holds mu.
func (t *Troupe) find(path string) *api.Actor {
	if i, found := slices.BinarySearchFunc(t.actors, api.Actor{Path: path}, byPath); found {
		return &t.actors[i]
	}
	return nil
}

func (t *Troupe) addService(i int) {
	connections := 12
	key := fmt.Sprintf("shop/service-%03d", i)
	path := "agent/world/services/" + strings.ReplaceAll(key, "/", "~")
	t.actors = append(t.actors, api.Actor{Path: path, Kind: "service", State: "running", Incarnation: 1, Pending: uint64(i % 7), Received: uint64(i)})
	vip := fmt.Sprintf("10.96.%d.%d:80/TCP", i/250, i%250+1)
	detail := &api.ServiceDetail{
		Service: api.Service{
			Key: key, ClusterIP: "10.96.0.1", Served: api.ServedAll, State: api.ServiceInSync, Generation: uint64(i), Frontends: 1, Endpoints: 1, Rows: 1, Changed: Began,
		},
		Wanted: []api.Frontend{{
			Frontend: vip, Service: key, Scope: "cluster", Kind: "clusterIP", From: "any", Action: "forward",
			Endpoints: []string{"10.1.1.3:8080"}, MasqueradeFrom: []string{}, AllowSources: []string{},
		}},
		Rendered:   []api.Row{{Renderer: "nat44", VIP: vip, Service: key, Flags: []string{}, Locals: []api.Local{{Address: "10.1.1.3:8080", Weight: 7}}}},
		Kubernetes: json.RawMessage(`{"name":"` + key + `"}`),
		Uses: []api.EndpointUse{
			{Slice: "s", Address: "10.1.1.4", Node: "shop-b", Pod: "shop/b", Frontends: 1, Why: "not ready"},
			{Slice: "s", Address: "10.1.1.3", Ready: true, Serving: true, Frontends: 1, Forwards: 1},
		},
		Draining: []api.DrainingEndpoint{{Address: "10.1.1.9:8080", Since: Began, Connections: &connections, Kept: "3 connections of another service"}},
		InVPP:    []api.Row{}, HealthChecks: []api.HealthCheck{}, Approximations: []api.FrontendApproximation{}, Conflicts: []api.Conflict{}, Problems: []api.Problem{},
	}
	if i%10 == 9 {
		detail.Served, detail.State, detail.Error = api.ServedNone, api.ServiceFailed, "VPP refused the row"
	} else {
		detail.InVPP = detail.Rendered
	}
	t.services, t.details[key] = append(t.services, detail.Service), detail
}

// dump is the present state.
func (t *Troupe) dump() *api.Dump {
	t.mu.Lock()
	defer t.mu.Unlock()
	status := api.StatusOf(cmp.Or(t.Hooks.Node, "shop-a"), cmp.Or(t.Hooks.Version, "v1.2.3"), t.ready, t.services)
	status.VPP, status.Sessions, status.Draining = "25.10-release", 7, 2
	d := &api.Dump{
		Readiness: t.ready, Status: status, Services: t.services, Details: t.details, Actors: slices.Clone(t.actors), Events: slices.Clone(t.journal), Chaos: t.faults(),
		Sessions: &api.Sessions{Time: Began, BusiestWorker: 7, Limit: 65536, Protocols: []api.ProtocolSessions{{Protocol: "tcp", Sessions: 5, Expired: 1}, {Protocol: "udp", Sessions: 2}}},
		Nodes: &api.Nodes{Self: "shop-a", Claim: "held", Connected: true, Page: api.Page[api.Node]{Items: []api.Node{
			{Name: "shop-a", ID: 1, VPPAddresses: []string{"192.168.16.1/24"}, ManagementAddresses: []string{"192.168.16.1"}, PodCIDRs: []string{}},
			{Name: "shop-b", ID: 2, VPPAddresses: []string{}, ManagementAddresses: []string{}, PodCIDRs: []string{}},
		}}, Approximations: []api.Approximation{
			{Renderer: "nat44", Services: 3, Wanted: "connection refused", Rendered: "connection times out", Why: "NAT44 sends no refusal"},
		}},
		Resync:   &api.Resync{Renderers: []api.RendererSync{{Renderer: "nat44", Epoch: uint64(1 + t.resyncs), InSync: len(t.drift) == 0, Read: t.read}}, Healing: []api.HealingCount{}, Ill: []api.IllPart{}},
		External: &api.External{Complete: true, Layers: []api.ExternalLayer{}, Page: api.Page[api.ExternalEntry]{Items: []api.ExternalEntry{}}},
	}
	slices.Reverse(d.Events)
	for _, source := range slices.Sorted(maps.Keys(t.external)) { // an applied layer is in VPP
		d.External.Layers = append(d.External.Layers, api.ExternalLayer{Source: source, Priority: 300, Entries: 1, Document: t.external[source], Since: Began})
		d.External.Items = append(d.External.Items, api.ExternalEntry{Name: "192.168.16.1", Kind: "identity", Source: source, State: string(api.ServiceInSync)})
	}
	return d
}

// Break changes readiness and liveness; a nil error means alive.
func (t *Troupe) Break(live error, ready api.Readiness) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live, t.ready = live, ready
}

// Drift makes VPP differ from the desired state by operations; a resync repairs it.
func (t *Troupe) Drift(operations ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drift = operations
}

// Record writes an event into the journal.
func (t *Troupe) Record(e api.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record(e)
}

// record writes the journal; the caller holds mu.
func (t *Troupe) record(e api.Event) {
	e.Seq = uint64(len(t.journal) + 1)
	e.Time = Began.Add(time.Duration(e.Seq) * time.Second)
	t.journal = append(t.journal, e)
}

// Live satisfies api.Prober.
func (t *Troupe) Live() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// Interfaces satisfies api.Reader.
func (t *Troupe) Interfaces(context.Context) (*api.Interfaces, error) {
	if t.Hooks.Uplink == "" {
		return nil, fmt.Errorf("%w: VPP is not connected", api.ErrUnavailable)
	}
	uplink := api.Interface{Index: 1, Name: t.Hooks.Uplink, Kind: "uplink", Up: true, Addresses: []string{"192.168.16.1/24"}, Pods: []string{}, Frontend: true}
	return &api.Interfaces{Uplink: t.Hooks.Uplink, NodeAddresses: uplink.Addresses, Page: api.Page[api.Interface]{Items: []api.Interface{uplink}}}, nil
}

// Addresses satisfies api.Reader: there are none.
func (*Troupe) Addresses(context.Context) (*api.Addresses, error) {
	return &api.Addresses{Page: api.Page[api.Address]{Items: []api.Address{}}}, nil
}

// ChangeAddresses satisfies api.Controller.
func (*Troupe) ChangeAddresses(context.Context, api.AddressesRequest) error { return nil }

// Packet satisfies api.Reader: every frontend forwards to its one endpoint.
func (t *Troupe) Packet(_ context.Context, source, destination string) (*api.Packet, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if destination == "" {
		return nil, fmt.Errorf("%w: destination", api.ErrInvalid)
	}
	p := &api.Packet{
		Source: source, Destination: destination, Class: "pod", Action: "none", Because: []string{"no service has the address"}, Backends: []api.PacketBackend{},
		Others: []api.PacketOther{}, Wanted: []api.Row{}, InVPP: []api.Row{}, VPP: api.NoRow, Approximations: []api.FrontendApproximation{},
	}
	for _, s := range t.details {
		if f := s.Wanted[0]; f.Frontend == destination {
			p.Action, p.Service, p.Frontend, p.Wanted, p.InVPP, p.VPP = f.Action, s.Key, &f, s.Rendered, s.InVPP, api.AsWanted
			p.Because = []string{"it is a frontend of " + s.Key + " for clients: any"}
			p.Backends = []api.PacketBackend{{Address: f.Endpoints[0], Share: 1, ShareInVPP: 1}}
		}
	}
	return p, nil
}

// Nodes satisfies api.Reader.
func (t *Troupe) Nodes(ctx context.Context) (*api.Nodes, error) {
	if t.Hooks.Nodes != nil {
		t.Hooks.Nodes()
	}
	return t.Dumped.Nodes(ctx)
}

// Diff satisfies api.Reader.
func (t *Troupe) Diff(ctx context.Context) (*api.Diff, error) {
	if t.Hooks.Diff != nil {
		if err := t.Hooks.Diff(ctx); err != nil {
			return nil, fmt.Errorf("read VPP: %w", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	diff := api.RendererDiff{Renderer: "nat44", Operations: append([]string{}, t.drift...), Objects: []string{}, Missing: []string{}}
	for _, op := range t.drift {
		diff.Objects = append(diff.Objects, regexp.MustCompile(`\S+:\d+/(TCP|UDP)|$`).FindString(op))
		if strings.HasPrefix(op, "add row ") {
			diff.Missing = append(diff.Missing, diff.Objects[len(diff.Objects)-1])
		}
	}
	return &api.Diff{Renderers: []api.RendererDiff{diff}}, nil
}

// StartResync satisfies api.Controller.
func (t *Troupe) StartResync(_ context.Context, r api.ResyncRequest) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resyncs++
	t.read = time.Now()
	t.record(api.Event{Kind: "resync", Actor: "agent/healer", Text: r.Reason, Operations: t.drift})
	t.drift = nil
	return nil
}

// Command satisfies api.Controller; it cannot restart.
func (t *Troupe) Command(_ context.Context, path string, verb api.Verb) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.find(path)
	if a == nil {
		return fmt.Errorf("actor %s: %w", path, api.ErrNotFound)
	}
	switch verb {
	case api.VerbSuspend:
		if a.State == "suspended" {
			return fmt.Errorf("actor %s: %w: it is suspended", path, api.ErrConflict)
		}
		a.State = "suspended"
	case api.VerbResume:
		a.State = "running"
	case api.VerbKill:
		a.Failures, a.Restarts, a.Incarnation, a.LastFailure = a.Failures+1, a.Restarts+1, a.Incarnation+1, "killed"
	default:
		return fmt.Errorf("%s: %w", verb, api.ErrUnsupported)
	}
	t.record(api.Event{Kind: "drill", Actor: path, Text: string(verb)})
	return nil
}

// ApplyExternal satisfies api.Controller: every document that is an object has one entry.
func (t *Troupe) ApplyExternal(_ context.Context, source string, document []byte) (*api.ExternalResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if document != nil && document[0] != '{' {
		return nil, fmt.Errorf("%w: expected an object", api.ErrInvalid)
	}
	if t.external == nil {
		t.external = map[string][]byte{}
	}
	if t.external[source] = document; document == nil {
		delete(t.external, source)
	}
	t.record(api.Event{Kind: "command", Object: source, Text: "external configuration", Cause: uint64(len(t.journal) + 1)})
	return &api.ExternalResult{Source: source, Cause: uint64(len(t.journal))}, nil
}

// AttachPod satisfies api.Controller; its only interface is Hooks.Uplink.
func (t *Troupe) AttachPod(_ context.Context, pod, name string) (*api.PodInterface, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name != "" && name != t.Hooks.Uplink {
		return nil, fmt.Errorf("interface %s: %w: VPP has no such interface", name, api.ErrConflict)
	}
	t.record(api.Event{Kind: "command", Object: pod, Text: name, Cause: uint64(len(t.journal) + 1)})
	return &api.PodInterface{Pod: pod, Interface: name, Cause: uint64(len(t.journal))}, nil
}

// Mailbox satisfies api.Reader.
func (t *Troupe) Mailbox(ctx context.Context, path string) (*api.Mailbox, error) {
	a, err := t.Actor(ctx, path)
	if err != nil {
		return nil, err
	}
	box := &api.Mailbox{Path: path, Held: a.State == "suspended", Pending: int(a.Pending), Messages: []api.Waiting{}}
	for range a.Pending {
		box.Messages = append(box.Messages, api.Waiting{Type: "*messages.Render", AgeSeconds: 1, Body: json.RawMessage(`{"key":"shop/web"}`)})
	}
	return box, nil
}

// ServiceSessions satisfies api.Reader.
func (t *Troupe) ServiceSessions(ctx context.Context, key string) (*api.ServiceSessions, error) {
	t.asked.Add(1)
	if _, err := t.Service(ctx, key); err != nil {
		return nil, err
	}
	return &api.ServiceSessions{Time: time.Now(), Incomplete: "VPP was asked about 8 of 9 backends", Items: []api.Session{
		{Protocol: "TCP", Client: "10.1.1.9:40000", Frontend: "10.96.0.1:80", Backend: "10.1.1.3:8080", IdleSeconds: 2, Packets: 7, Bytes: 700},
		{Protocol: "TCP", Client: "10.1.1.3:40000", ClientAs: "10.1.1.254:1024", Frontend: "10.96.0.1:80", Backend: "10.1.1.3:8080", IdleSeconds: 300, Expired: true},
	}}, nil
}

// Asked is the number of times that VPP was asked for sessions.
func (t *Troupe) Asked() int { return int(t.asked.Load()) }

// Traffic satisfies api.Reader.
func (t *Troupe) Traffic(ctx context.Context, path string) (*api.Traffic, error) {
	a, err := t.Actor(ctx, path)
	if err != nil {
		return nil, err
	}
	return &api.Traffic{
		Kind: a.Kind, Messages: []api.MessageTraffic{{Type: "Render", Count: 3, P50Seconds: 0.001, P99Seconds: 0.002}},
		From: []api.KindTraffic{{Kind: "registry", Count: 2}}, To: []api.KindTraffic{},
	}, nil
}

// DeadLetters satisfies api.Reader.
func (t *Troupe) DeadLetters(context.Context) (*api.DeadLetters, error) {
	return &api.DeadLetters{Count: 70, Items: []api.DeadLetter{{Time: Began, To: "agent/world/gone", Type: "Render", Reason: "no such actor"}}}, nil
}

// State satisfies api.Reader.
func (t *Troupe) State(ctx context.Context, path string) (json.RawMessage, error) {
	a, err := t.Actor(ctx, path)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(fmt.Sprintf(`{"lives": %d}`, a.Incarnation)), nil
}

// Failures satisfies api.Reader.
func (t *Troupe) Failures(ctx context.Context, path string) ([]api.Failure, error) {
	a, err := t.Actor(ctx, path)
	if err != nil || a.Failures == 0 {
		return nil, err
	}
	return []api.Failure{{Time: Began, Incarnation: a.Incarnation - 1, Reason: a.LastFailure, Decision: "restart"}}, nil
}

// chaos holds the faults of a Troupe. They last until they are stopped; a fault without a duration
// ends at once.
type chaos struct {
	records []live.Record // the oldest first
	run     *live.RunStatus
}

// faults are the faults with their outcomes; the caller holds mu.
func (t *Troupe) faults() *live.Status {
	s := &live.Status{Enabled: true, Run: t.chaos.run, Records: slices.Clone(t.chaos.records)}
	slices.Reverse(s.Records)
	for i := range s.Records {
		if s.Records[i].State == live.StateActive {
			s.Active++
		}
	}
	return s
}

// Inject satisfies api.Controller.
func (t *Troupe) Inject(_ context.Context, who string, f live.Fault) (*live.Record, error) {
	if err := f.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case f.Actor == "agent":
		return nil, fmt.Errorf("%w: the root actor is exempt", api.ErrForbidden)
	case t.find(f.Actor) == nil:
		return nil, fmt.Errorf("actor %s: %w", f.Actor, api.ErrNotFound)
	}
	r := live.Record{ID: uint64(len(t.chaos.records) + 1), Who: who, What: f, Actor: f.Actor, Began: Began, State: live.StateActive}
	if !live.Lookup(f.Kind).Lasts() {
		a := t.find(f.Actor)
		a.Failures, a.Restarts, a.Incarnation, a.LastFailure = a.Failures+1, a.Restarts+1, a.Incarnation+1, "killed"
		r.State, r.Ended, r.EndedBy, r.Struck = live.StateWell, Began.Add(time.Second), "done", 1
		r.Outcome = "well again after 1ms; VPP: 0 writes, 0 row reads, holds what it should"
	}
	t.chaos.records = append(t.chaos.records, r)
	t.record(api.Event{Kind: "drill", Actor: f.Actor, Text: string(f.Kind)})
	return &r, nil
}

// StartDrill satisfies api.Controller; the drill is over at once, and has passed unless a service
// has failed.
func (t *Troupe) StartDrill(_ context.Context, who string, plan live.Plan) (*live.RunStatus, error) {
	if err := plan.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	run := &live.RunStatus{ID: 1, Name: plan.Name, Who: who, Seed: 7, Began: Began, Ended: Began.Add(time.Minute), State: live.RunPassed, Faults: 3}
	run.Invariants = []live.Invariant{{Name: "I2", What: "every service is in sync", State: live.Held}}
	for _, s := range t.services {
		if s.State == api.ServiceFailed {
			run.State, run.Reason = live.RunViolated, "I2: a service has failed"
			run.Invariants[0].State, run.Invariants[0].Detail = live.Violated, "a service has failed"
		}
	}
	t.chaos.run = run
	return run, nil
}

// StopChaos satisfies api.Controller.
func (t *Troupe) StopChaos(_ context.Context, who string) (stopped int, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.chaos.records {
		if r := &t.chaos.records[i]; r.State == live.StateActive {
			r.State, r.Ended, r.EndedBy = live.StateWell, Began.Add(time.Second), "stopped by "+who
			stopped++
		}
	}
	return stopped, nil
}
