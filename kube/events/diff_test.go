package events

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

const (
	failed  = messages.RenderState_RENDER_FAILED
	inSync  = messages.RenderState_RENDER_IN_SYNC
	pending = messages.RenderState_RENDER_PENDING
)

// option changes a status.
type option func(*messages.ServiceStatus)

// status makes a status of default/web with one frontend.
func status(options ...option) *messages.ServiceStatus {
	s := &messages.ServiceStatus{Key: "default/web", View: &messages.ServiceView{Key: "default/web", Uid: "uid-1"}}
	for _, o := range options {
		o(s)
	}
	return s
}

func uid(text string) option { return func(s *messages.ServiceStatus) { s.View.Uid = text } }

func gone(s *messages.ServiceStatus) { s.Gone, s.View = true, nil }

// frontends adds frontends to the view, all TCP on port 80.
func frontends(addresses ...string) option {
	return func(s *messages.ServiceStatus) {
		for _, a := range addresses {
			s.View.Frontends = append(s.View.Frontends, &messages.Frontend{Address: a, Port: 80, Protocol: messages.Protocol_TCP})
		}
	}
}

func wrong(kind, object, field, message string) option {
	return func(s *messages.ServiceStatus) {
		s.Errors = append(s.Errors, &messages.ObjectError{Source: "kubernetes", Kind: kind, Object: object, Field: field, Message: message})
	}
}

// ack adds the acknowledgement of a renderer.
func ack(renderer string, state messages.RenderState, options ...func(*messages.RenderAck)) option {
	return func(s *messages.ServiceStatus) {
		a := &messages.RenderAck{Key: s.GetKey(), Renderer: renderer, State: state}
		for _, o := range options {
			o(a)
		}
		s.Renders = append(s.Renders, a)
	}
}

func because(text string) func(*messages.RenderAck) {
	return func(a *messages.RenderAck) { a.Error = text }
}

func conflict(frontend, owner string) func(*messages.RenderAck) {
	return func(a *messages.RenderAck) {
		a.Conflicts = append(a.Conflicts, &messages.Conflict{Frontend: frontend, Owner: owner})
	}
}

func approximated(frontend, wanted, rendered, why string) func(*messages.RenderAck) {
	return func(a *messages.RenderAck) {
		a.Approximations = append(a.Approximations, &messages.Approximation{
			Service: a.GetKey(), Frontend: frontend, Wanted: wanted, Rendered: rendered, Why: why, Particular: true,
		})
	}
}

// ofTheRenderer makes every approximation a property of the renderer.
func ofTheRenderer(a *messages.RenderAck) {
	for _, one := range a.GetApproximations() {
		one.Particular = false
	}
	for _, one := range a.GetUnrendered() {
		one.General = "so it is"
	}
}

// unrendered adds a frontend without a row, like nat44.
func unrendered(frontend, field, why string) func(*messages.RenderAck) {
	return func(a *messages.RenderAck) {
		message := "frontend " + frontend + " is not served: " + why
		a.Unrendered = append(a.Unrendered, &messages.ObjectError{Field: field, Message: message})
		a.Error = "not rendered: " + field + ": " + message
	}
}

// eventText renders events: reason, "+" for Normal, "~" for Standing, "*" for Shared, note.
func eventText(events []Event) []string {
	var lines []string
	for _, e := range events {
		var marks strings.Builder
		for _, m := range []struct {
			set  bool
			mark string
		}{{e.Type == Normal, "+"}, {e.Standing, "~"}, {e.Shared, "*"}} {
			if m.set {
				marks.WriteString(m.mark)
			}
		}
		lines = append(lines, marks.String()+e.Reason+" "+e.Note)
	}
	return lines
}

func TestDiff(t *testing.T) {
	good := status(ack("nat44", inSync))
	for _, test := range []struct {
		name              string
		previous, current *messages.ServiceStatus
		want              []string
	}{
		{"nothing to tell of a good service", nil, good, nil},
		{
			"nor of what the renderer does with every service", good,
			status(ack("nat44", inSync, approximated("10.0.0.1:80/TCP", "source replaced", "source kept", "one row"),
				unrendered("[fd00::1]:80/TCP", "ports[x].address", "IPv4 only"), ofTheRenderer)), nil,
		},
		{"the same again", good, good, nil},
		{"a service without a view", nil, &messages.ServiceStatus{Key: "default/web"}, nil},
		{"a service that is gone", status(ack("nat44", failed, because("boom"))), status(gone), nil},
		{"nothing at all", nil, nil, nil},

		{
			"it fails", good, status(ack("nat44", failed, because("10.96.0.1:80/TCP: no memory"))),
			[]string{"FailedToRender nat44: 10.96.0.1:80/TCP: no memory"},
		},
		{"it still fails", status(ack("nat44", failed, because("boom"))), status(ack("nat44", failed, because("boom"))), nil},
		{
			"it fails for another reason", status(ack("nat44", failed, because("boom"))), status(ack("nat44", failed, because("bang"))),
			[]string{"FailedToRender nat44: bang"},
		},
		{"it fails without a reason", good, status(ack("nat44", failed)), []string{"FailedToRender nat44: the reason is not known"}},
		{
			"it works again", status(ack("nat44", failed, because("boom"))), good,
			[]string{"+Rendered nat44: VPP holds everything that this service needs"},
		},
		{"pending is no news", status(ack("nat44", failed, because("boom"))), status(ack("nat44", pending, because("waiting for VPP"))), nil},
		{"it was failing when we came", nil, status(ack("nat44", failed, because("boom"))), []string{"~FailedToRender nat44: boom"}},
		{
			"it was failing when the renderer came", status(), status(ack("nat44", failed, because("boom"))),
			[]string{"~FailedToRender nat44: boom"},
		},
		{
			"the object is another one", status(ack("nat44", failed, because("boom")), uid("uid-0")), status(ack("nat44", failed, because("boom"))),
			[]string{"~FailedToRender nat44: boom"},
		},
		{
			"of two renderers one fails", status(ack("nat44", inSync), ack("cnat", inSync)),
			status(ack("nat44", inSync), ack("cnat", failed, because("boom"))),
			[]string{"FailedToRender cnat: boom"},
		},

		{
			"a part that cannot be rendered", good, status(ack("nat44", inSync, unrendered("10.0.0.1:5060/SCTP", "ports[sip].protocol", "TCP and UDP only"))),
			[]string{"*FailedToRender nat44: ports[sip].protocol is not served: TCP and UDP only"},
		},
		{
			"it was like that when we came, for the cluster IP and the node port", nil, status(ack("nat44", inSync,
				unrendered("192.168.16.1:30000/SCTP", "ports[sip].protocol", "TCP and UDP only"),
				unrendered("10.0.0.1:5060/SCTP", "ports[sip].protocol", "TCP and UDP only"))),
			[]string{"~*FailedToRender nat44: ports[sip].protocol is not served: TCP and UDP only"},
		},
		{
			"it is not wanted any more", status(ack("nat44", inSync, unrendered("10.0.0.1:5060/SCTP", "ports[sip].protocol", "x"))), good,
			[]string{"+Rendered nat44: VPP holds everything that this service needs"},
		},
		{
			"the rest works again", status(ack("nat44", failed, because("boom"))),
			status(ack("nat44", inSync, unrendered("10.0.0.1:5060/SCTP", "ports[sip].protocol", "x"), unrendered("10.0.0.1:5061/SCTP", "ports[sips].protocol", "x"))),
			[]string{"*FailedToRender nat44: ports[sip].protocol is not served: x (and 1 more)"},
		},

		{
			"a conflict", good, status(ack("nat44", inSync, conflict("1.2.3.4:80/TCP", "default/old"))),
			[]string{"*ConflictingExternalIP service default/old, which is older or has the smaller name, has 1.2.3.4:80/TCP"},
		},
		{
			"conflicts by owner", good, status(ack("nat44", inSync,
				conflict("1.2.3.4:80/TCP", "default/old"), conflict("1.2.3.5:80/TCP", "a/b"), conflict("1.2.3.6:80/TCP", "default/old"))),
			[]string{
				"*ConflictingExternalIP service a/b, which is older or has the smaller name, has 1.2.3.5:80/TCP",
				"*ConflictingExternalIP service default/old, which is older or has the smaller name, has 1.2.3.4:80/TCP, 1.2.3.6:80/TCP",
			},
		},
		{
			"one more conflict with the same owner", status(ack("nat44", inSync, conflict("1.2.3.4:80/TCP", "a/b"))),
			status(ack("nat44", inSync, conflict("1.2.3.4:80/TCP", "a/b"), conflict("1.2.3.5:80/TCP", "a/b"))),
			[]string{"*ConflictingExternalIP service a/b, which is older or has the smaller name, has 1.2.3.5:80/TCP"},
		},
		{
			"a conflict changes its owner", status(frontends("1.2.3.4"), ack("nat44", inSync, conflict("1.2.3.4:80/TCP", "a/b"))),
			status(frontends("1.2.3.4"), ack("nat44", inSync, conflict("1.2.3.4:80/TCP", "a/c"))),
			[]string{"*ConflictingExternalIP service a/c, which is older or has the smaller name, has 1.2.3.4:80/TCP"},
		},
		{
			"a row in VPP from outside troupe", good, status(ack("nat44", inSync, conflict("1.2.3.4:80/TCP", "VPP: static mapping"))),
			[]string{"ConflictingExternalIP a row in VPP from outside troupe (static mapping) has 1.2.3.4:80/TCP"},
		},
		{
			"a conflict is won", status(frontends("1.2.3.4"), ack("nat44", inSync, conflict("1.2.3.4:80/TCP", "a/b"))),
			status(frontends("1.2.3.4"), ack("nat44", inSync)),
			[]string{"+Recovered this service has 1.2.3.4:80/TCP now"},
		},
		{
			"a contested address is given up", status(frontends("1.2.3.4"), ack("nat44", inSync, conflict("1.2.3.4:80/TCP", "a/b"))),
			status(ack("nat44", inSync)), nil,
		},

		{
			"an approximation", good, status(ack("nat44", inSync, approximated("1.2.3.4:80/TCP", "drop", "no row", "NAT44 drops nothing"))),
			[]string{"+*Approximated nat44: no row instead of drop: NAT44 drops nothing"},
		},
		{
			"the same one for many frontends is told once", good, status(ack("nat44", inSync,
				approximated("1.2.3.4:80/TCP", "drop", "no row", ""), approximated("1.2.3.5:80/TCP", "drop", "no row", ""),
				approximated("1.2.3.5:80/TCP", "reject", "no row", ""))),
			[]string{"+*Approximated nat44: no row instead of drop", "+*Approximated nat44: no row instead of reject"},
		},
		{
			"one more frontend is no news", status(ack("nat44", inSync, approximated("1.2.3.4:80/TCP", "drop", "no row", ""))),
			status(ack("nat44", inSync, approximated("1.2.3.4:80/TCP", "drop", "no row", ""), approximated("1.2.3.5:80/TCP", "drop", "no row", ""))), nil,
		},
		{
			"how many endpoints there are is not part of it", good, status(ack("nat44", inSync,
				approximated("1.2.3.4:80/TCP", "300 endpoints", "253 endpoints, local ones first", "a row has room for 253 backends"))),
			[]string{"+*Approximated nat44: some endpoints, local ones first instead of all its endpoints: a row has room for 253 backends"},
		},
		{
			"one more endpoint is no news", status(ack("nat44", inSync, approximated("1.2.3.4:80/TCP", "from local: 1 endpoints", "like all others: drop", ""))),
			status(ack("nat44", inSync, approximated("1.2.3.4:80/TCP", "from local: 2 endpoints", "like all others: drop", ""))), nil,
		},
		{
			"an approximation that is over is no news", status(ack("nat44", inSync, approximated("1.2.3.4:80/TCP", "drop", "no row", ""))), good, nil,
		},

		{
			"an unusable field", good, status(ack("nat44", inSync), wrong("Service", "default/web", "spec.externalIPs[0]", `"1.2.3" is no address`)),
			[]string{`*InvalidInput spec.externalIPs[0]: "1.2.3" is no address`},
		},
		{
			"an unusable field of a slice", nil, status(wrong("EndpointSlice", "default/web-x1", "endpoints.addresses", "2 unusable")),
			[]string{"~*InvalidInput EndpointSlice default/web-x1: endpoints.addresses: 2 unusable"},
		},
		{
			"an unusable object", nil, status(wrong("Service", "default/other", "", "too large")), []string{"~*InvalidInput Service default/other: too large"},
		},
		{
			"twice the same, and one that was known", status(wrong("Service", "default/web", "a", "x")),
			status(wrong("Service", "default/web", "a", "x"), wrong("Service", "default/web", "b", "y"), wrong("Service", "default/web", "b", "y")),
			[]string{"*InvalidInput b: y"},
		},
		{"a field that is good again", status(wrong("Service", "default/web", "a", "x")), status(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Diff(test.previous, test.current)
			if diff := cmp.Diff(test.want, eventText(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, e := range got {
				if want := (Object{"Service", "default", "web", "uid-1"}); e.Object != want || e.Action == "" {
					t.Errorf("%+v is about %v", e, e.Object)
				}
			}
		})
	}
}

func TestManyProblemsAreFewEvents(t *testing.T) {
	for n, want := range map[int]int{4: 4, 5: 5, 6: 5, 100: 5} {
		var options []option
		for i := range n {
			options = append(options, wrong("Service", "default/web", fmt.Sprintf("f[%02d]", i), "bad"))
		}
		got := Diff(nil, status(options...))
		if len(got) != want {
			t.Errorf("%d problems, %d events", n, len(got))
		}
		last := got[len(got)-1].Note
		if more := fmt.Sprintf("(and %d more)", n-want); strings.HasSuffix(last, more) != (n > want) {
			t.Errorf("%d problems: the last one is %q", n, last)
		}
	}
	var conflicts []func(*messages.RenderAck)
	for i := range 30 {
		conflicts = append(conflicts, conflict(fmt.Sprintf("1.2.3.%d:80/TCP", i), "a/b"))
	}
	got := Diff(status(ack("nat44", inSync)), status(ack("nat44", inSync, conflicts...)))
	if len(got) != 1 || !strings.Contains(got[0].Note, "1.2.3.7:80/TCP and 22 more") {
		t.Errorf("30 conflicts: %q", eventText(got))
	}
}

func TestDiffOfTheSameIsNothing(t *testing.T) {
	s := status(frontends("1.2.3.4"), ack("nat44", failed, because("boom"), conflict("1.2.3.4:80/TCP", "a/b"),
		approximated("1.2.3.4:80/TCP", "a", "b", "c")), ack("cnat", inSync, unrendered("1.2.3.4:80/TCP", "ports[a].protocol", "x")), wrong("Service", "default/web", "a", "b"))
	if got := Diff(s, s); len(got) > 0 {
		t.Errorf("got %q", eventText(got))
	}
	first, second := eventText(Diff(nil, s)), eventText(Diff(nil, s))
	if diff := cmp.Diff(first, second); diff != "" || len(first) != 5 {
		t.Errorf("%d events; not the same ones twice:\n%s", len(first), diff)
	}
}
