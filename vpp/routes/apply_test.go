package routes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

var (
	addSource = Op{Verb: Register}
	addFirm   = Op{Verb: Add, Prefix: theNetwork, Route: Route{Kind: Reject}}
	// theNetwork is the service network of these tests.
	theNetwork = pfx("10.96.0.0/16")
)

// from returns the operation with the source as a state would have it.
func (op Op) from(id uint8) Op {
	op.Source = id
	return op
}

func TestApply(t *testing.T) {
	m := newModel()
	results := Apply(t.Context(), m, []Op{addSource, addFirm})
	check(t, "registered", Op{Verb: Register, Source: 26}, results[0].Op)
	check(t, "added", addFirm.from(26), results[1].Op)
	for _, r := range results {
		if r.Err != nil || r.Unknown || r.Messages != 1 {
			t.Errorf("%s: %+v", r.Op, r)
		}
	}
	if id, kind := m.wins(theNetwork); id != 26 || kind != toUnreach {
		t.Errorf("source %d, %s", id, kind)
	}

	results = Apply(t.Context(), m, []Op{addSource, {Verb: Delete, Source: 26, Prefix: theNetwork}})
	check(t, "sent", []string{"fib_source_add", "ip_route_add_del_v2", "ip_route_add_del_v2"}, m.sent)
	check(t, "registered before", Op{Verb: Register, Source: 26}, results[0].Op)
	if results[0].Err != nil || results[0].Messages != 0 || results[1].Err != nil || len(m.entries) != 0 {
		t.Errorf("%+v, entries %v", results, m.entries)
	}
}

func TestApplyNothing(t *testing.T) {
	m := newModel()
	m.before = func(msg api.Message) { t.Errorf("%s was asked", msg.GetMessageName()) }
	if results := Apply(t.Context(), m, nil); len(results) != 0 {
		t.Errorf("results %v", results)
	}
	results := Apply(t.Context(), m, []Op{{Verb: Add, Prefix: pfx("0.0.0.0/0"), Route: Route{Kind: Reject}}})
	if !errors.Is(results[0].Err, link.ErrUnsafe) || results[0].Unknown || results[0].Messages != 0 {
		t.Errorf("%+v", results[0])
	}
}

// TestApplyNeverTrustsAnId: where the source differs from the state nothing is sent, because it
// could crash VPP or hit another client's routes.
func TestApplyNeverTrustsAnId(t *testing.T) {
	del := Op{Verb: Delete, Source: 26, Prefix: theNetwork}
	for name, c := range map[string]struct {
		names []string // registered from id 26 on
		ops   []Op
		good  int // ids of ours used
	}{
		"VPP was restarted":           {nil, []Op{addFirm.from(26), del}, 0},
		"it is another client's now":  {[]string{"their"}, []Op{addFirm.from(26), del}, 0},
		"ours has another id now":     {[]string{"their", "troupe"}, []Op{addFirm.from(26), del}, 0},
		"no request to register":      {nil, []Op{addFirm}, 0},
		"ours, although a surprise":   {[]string{"troupe"}, []Op{addFirm}, 1},
		"it is what the state says":   {[]string{"troupe"}, []Op{addFirm.from(26), del}, 2},
		"registered twice, the later": {[]string{"troupe", "troupe"}, []Op{addFirm.from(27)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			for _, n := range c.names {
				m.register(n, 0xcf)
			}
			good := 0
			for _, r := range Apply(t.Context(), m, c.ops) {
				switch {
				case r.Err == nil && !r.Unknown && r.Messages == 1:
					good++
				case !errors.Is(r.Err, ErrSource) || !r.Unknown || r.Messages != 0:
					t.Errorf("%+v", r)
				}
			}
			if good != c.good || len(m.sent) != c.good || m.died != "" {
				t.Errorf("%d are done, %d sent, want %d; died: %s", good, len(m.sent), c.good, m.died)
			}
		})
	}
}

// TestApplyAfterRestart: a batch that was made for the VPP before registers nothing by accident and
// is repeated after the next read.
func TestApplyAfterRestart(t *testing.T) {
	have := knows(nil)
	want := Want{theNetwork: plainReject}
	m := newModel()
	for _, r := range Apply(t.Context(), m, Diff(have, want, true)) {
		if !errors.Is(r.Err, ErrSource) || !r.Unknown {
			t.Errorf("%+v", r)
		}
	}
	check(t, "sent", nil, m.sent)
	have = m.read(t, nil, want)
	m.apply(t, have, Diff(have, want, true))
	check(t, "left", nil, Diff(have, want, true))
}

// TestApplyExhausted: VPP reports success with the id 0, which in a route would mean the API.
func TestApplyExhausted(t *testing.T) {
	m := newModel()
	for m.register("other client", 0xe5) != 0 {
	}
	results := Apply(t.Context(), m, []Op{addSource, addFirm})
	if !errors.Is(results[0].Err, ErrExhausted) || results[0].Messages != 1 {
		t.Errorf("%+v", results[0])
	}
	if !errors.Is(results[1].Err, ErrSource) || results[1].Messages != 0 {
		t.Errorf("%+v", results[1])
	}
	if m.died != "" || len(m.entries) != 0 {
		t.Errorf("died: %s, entries %v", m.died, m.entries)
	}
}

// TestApplyRacesWithAnother: another client registers our name between our look and our
// registration; the first id counts for both.
func TestApplyRacesWithAnother(t *testing.T) {
	m := newModel()
	m.fault = func(msg api.Message) error {
		if _, ok := msg.(*fib.FibSourceAdd); ok {
			m.fault = nil
			m.register("troupe", 0xcf)
		}
		return nil
	}
	results := Apply(t.Context(), m, []Op{addSource, addFirm})
	if results[0].Op.Source != 26 || results[1].Op.Source != 26 || results[1].Err != nil {
		t.Errorf("%+v", results)
	}
	if len(m.registered) != 28 {
		t.Errorf("%d sources", len(m.registered))
	}
}

// TestApplyRegistersOnce, also where one batch asks twice.
func TestApplyRegistersOnce(t *testing.T) {
	m := newModel()
	for _, r := range Apply(t.Context(), m, []Op{addSource, addSource}) {
		if r.Err != nil || r.Op != addSource.from(26) {
			t.Errorf("%+v", r)
		}
	}
	check(t, "sent", []string{"fib_source_add"}, m.sent)
}

// everyOp carries out one operation of every verb: the registration on a VPP that does not know us,
// the other operations on a VPP that knows us as source 26.
func everyOp(t *testing.T, through func(*model) link.Caller) []OpResult {
	known := newModel()
	known.register("troupe", 0xcf)
	routes := []Op{addFirm.from(26), {Verb: Delete, Source: 26, Prefix: pfx("10.97.0.0/16")}}
	return append(Apply(t.Context(), through(newModel()), []Op{addSource}), Apply(t.Context(), through(known), routes)...)
}

// answering is a VPP that answers to everything except dumps with an error.
func answering(fault func(api.Message) error) func(*model) link.Caller {
	return func(m *model) link.Caller {
		m.fault = func(msg api.Message) error {
			if _, dump := msg.(*fib.FibSourceDump); dump {
				return nil
			}
			return fault(msg)
		}
		return m
	}
}

// TestErrorTable pins the meaning of every return value for every operation.
func TestErrorTable(t *testing.T) {
	type cause struct {
		verb   Verb
		retval int32
	}
	done := errors.New("done")
	special := map[cause]error{
		{Delete, -6}: done, {Delete, -3}: done,
		{Add, -3}: ErrNoTable, {Register, -3}: ErrNoTable, {Register, -9}: ErrUnsupported, {Add, -9}: ErrUnsupported, {Delete, -9}: ErrUnsupported,
		{Register, -171}: link.ErrUnsafe, {Add, -171}: link.ErrUnsafe, {Delete, -171}: link.ErrUnsafe,
	}
	for _, retval := range []int32{-1, -3, -6, -7, -9, -52, -126, -171, 1} {
		for _, r := range everyOp(t, answering(func(msg api.Message) error { return &link.RetvalError{Message: msg.GetMessageName(), Retval: retval} })) {
			want, known := special[cause{r.Op.Verb, retval}]
			switch {
			case want == done:
				if r.Err != nil {
					t.Errorf("%s answered with %d: %v", r.Op.Verb, retval, r.Err)
				}
				continue
			case !known:
				want = batch.ErrRejected
			}
			got, _ := link.Retval(r.Err)
			if !errors.Is(r.Err, want) || got != retval || r.Unknown || r.Messages != 1 {
				t.Errorf("%s answered with %d: %+v, want %v", r.Op.Verb, retval, r, want)
			}
		}
	}
}

func TestApplyWithoutAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		fault   error
		want    error
		unknown bool
		sent    int
	}{
		{"unknown", fmt.Errorf("request: %w", link.ErrUnknown), link.ErrUnknown, true, 1},
		{"not sent", link.ErrNotSent, link.ErrNotSent, false, 0},
		{"refused", link.ErrRefused, link.ErrRefused, false, 0},
		{"unsupported", link.ErrUnsupported, ErrUnsupported, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range everyOp(t, answering(func(api.Message) error { return c.fault })) {
				if !errors.Is(r.Err, c.want) || r.Unknown != c.unknown || r.Messages != c.sent {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// noConnection is a link without VPP.
type noConnection struct{ err error }

func (n noConnection) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	return make([]link.Result, len(reqs)), n.err
}

func (n noConnection) Dump(context.Context, api.Message, func(api.Message)) error { return n.err }

// halfway is a link that loses VPP after the sources were read.
type halfway struct{ *model }

func (halfway) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	return make([]link.Result, len(reqs)), link.ErrDown
}

func TestApplyWithoutConnection(t *testing.T) {
	down := func(err error) func(*model) link.Caller { return func(*model) link.Caller { return noConnection{err} } }
	for name, through := range map[string]func(*model) link.Caller{
		"down": down(link.ErrDown), "down after the first look": func(m *model) link.Caller { return halfway{m} },
	} {
		for _, r := range everyOp(t, through) {
			if !errors.Is(r.Err, link.ErrNotSent) || !errors.Is(r.Err, link.ErrDown) || r.Unknown || r.Messages != 0 {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
	for _, r := range everyOp(t, down(link.ErrUnsupported)) {
		if !errors.Is(r.Err, ErrUnsupported) {
			t.Errorf("old VPP: %+v", r)
		}
	}
}

// TestApplyLosesTrackOfTheRegistration: the source is registered, perhaps, and its id is not known.
func TestApplyLosesTrackOfTheRegistration(t *testing.T) {
	m := newModel()
	m.fault = func(msg api.Message) error {
		if _, ok := msg.(*fib.FibSourceAdd); ok {
			m.fault = only[*fib.FibSourceDump](link.ErrDown)
		}
		return nil
	}
	results := Apply(t.Context(), m, []Op{addSource, addFirm})
	if !errors.Is(results[0].Err, link.ErrDown) || errors.Is(results[0].Err, link.ErrNotSent) || !results[0].Unknown || results[0].Messages != 1 {
		t.Errorf("%+v", results[0])
	}
	if !errors.Is(results[1].Err, link.ErrNotSent) || results[1].Unknown || results[1].Messages != 0 {
		t.Errorf("%+v", results[1])
	}
}

// TestApplyGoesOn: a failed operation does not stop the later ones.
func TestApplyGoesOn(t *testing.T) {
	m := newModel()
	m.register("troupe", 0xcf)
	failed := false
	m.fault = func(msg api.Message) error {
		if _, ok := msg.(*ip.IPRouteAddDelV2); ok && !failed {
			failed = true
			return &link.RetvalError{Message: "ip_route_add_del_v2", Retval: -1}
		}
		return nil
	}
	other := addFirm.from(26)
	other.Prefix = pfx("10.97.0.0/16")
	results := Apply(t.Context(), m, []Op{addFirm.from(26), {Verb: Add}, other})
	for i, want := range []error{batch.ErrRejected, link.ErrUnsafe, nil} {
		if !errors.Is(results[i].Err, want) || (results[i].Err == nil) != (want == nil) {
			t.Errorf("%+v", results[i])
		}
	}
	if len(m.entries) != 1 {
		t.Errorf("entries %v", m.entries)
	}
}

// TestApplyWithholdsWhatIsCovered: an external address gets no route where a route of another owner
// leads to it, or to a network around it.
func TestApplyWithholdsWhatIsCovered(t *testing.T) {
	lb := pfx("203.0.113.7/32")
	add := Op{Verb: Add, Source: 26, Prefix: lb, Route: externalReject}
	for name, c := range map[string]struct {
		there   netip.Prefix
		source  uint8
		covered bool
	}{
		"nothing but the default route":             {pfx("198.51.100.0/24"), fromAPI, false},
		"a network of another owner":                {pfx("203.0.113.0/24"), fromAPI, true},
		"a connected network":                       {pfx("203.0.113.0/26"), fromInterface, true},
		"a service network of ours":                 {pfx("203.0.113.0/24"), 26, false},
		"the address, which NAT44 has left behind":  {lb, fromNAT, false},
		"two addresses, as narrow as a network can": {pfx("203.0.113.6/31"), fromAPI, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			m.register("troupe", 0xcf)
			m.set(c.there, c.source, toNormal)
			r := Apply(t.Context(), m, []Op{add})[0]
			if errors.Is(r.Err, ErrCovered) != c.covered || r.Unknown || c.covered && (r.Op.By != c.there || len(m.sent) > 0) || !c.covered && r.Err != nil {
				t.Errorf("%+v, sent %v", r, m.sent)
			}
			state, err := Read(t.Context(), m, nil, []netip.Prefix{lb})
			if _, covered := state.Covered[lb]; err != nil || covered != c.covered {
				t.Errorf("read: covered %v, %v", state.Covered, err)
			}
		})
	}
	m := newModel()
	m.register("troupe", 0xcf)
	m.fault = only[*ip.IPRouteLookupV2](link.ErrUnknown)
	if r := Apply(t.Context(), m, []Op{add})[0]; !errors.Is(r.Err, link.ErrNotSent) || r.Unknown || len(m.sent) > 0 {
		t.Errorf("without an answer: %+v, sent %v", r, m.sent)
	}
}
