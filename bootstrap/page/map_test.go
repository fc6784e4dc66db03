package page

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

// TestEnd: an endpoint on the map has its node, interface, share and sessions, or a fault.
func TestEnd(t *testing.T) {
	m := newMapped(
		&oneService{
			ServiceDetail: &api.ServiceDetail{
				Uses: []api.EndpointUse{
					{Address: "10.1.1.4", Pod: "shop/web-0", Node: "a"}, {Address: "fd00::5", Pod: "shop/web-1", Node: "b"}, {Address: "10.1.1.9", Pod: "shop/web-2", Node: "a", Fault: "VPP has no interface for it"},
				},
				InVPP: []api.Row{
					{VIP: "10.96.0.1:80/TCP", Locals: []api.Local{{Address: "10.1.1.4:80", Weight: 3}, {Address: "[fd00::5]:80", Weight: 1}}},
					{VIP: "10.96.0.2:80/TCP", Locals: []api.Local{{Address: "10.1.1.4:80", Weight: 1}}},
				},
				Approximations: []api.FrontendApproximation{{Frontend: "10.96.0.2:80/TCP"}},
			},
			Sessions: &api.ServiceSessions{Items: []api.Session{{Backend: "10.1.1.4:80"}, {Backend: "10.1.1.4:80", Expired: true}}},
		},
		&api.Interfaces{Uplink: "up0", Page: api.Page[api.Interface]{Items: []api.Interface{{Name: "tap1", Pods: []string{"shop/web-0"}}}}}, "a")
	for _, c := range []struct{ address, frontend, want string }{
		{"10.1.1.4:80", "10.96.0.1:80/TCP", "shop/web-0 on a through tap1, 75 %, 1 sessions, false "},
		{"[fd00::5]:80", "10.96.0.1:80/TCP", "shop/web-1 on b through up0, 25 %, 0 sessions, false "},
		{"[fd00::5]:80", "10.96.0.2:80/TCP", "shop/web-1 on b through up0, none, 0 sessions, true "},
		{"10.1.1.9:80", "10.96.0.1:80/TCP", "shop/web-2 on a through , none, 0 sessions, false VPP has no interface for it"},
	} {
		e, share := m.end(c.address, c.frontend), "none"
		if e.Share != nil {
			share = fmt.Sprintf("%.0f %%", 100**e.Share)
		}
		if got := fmt.Sprintf("%s on %s through %s, %s, %d sessions, %v %s", e.Pod, e.Node, e.Interface, share, *e.Sessions, e.Approximated, e.Fault); got != c.want {
			t.Errorf("%s: %q, want %q", c.address, got, c.want)
		}
	}
}

// TestLargeMap: the map of a service with thousands of frontends has an end.
func TestLargeMap(t *testing.T) {
	troupe := apitest.New(1)
	h := &handler{Config: Config{Source: troupe, Node: "a"}}
	s := &oneService{ServiceDetail: &api.ServiceDetail{Draining: []api.DrainingEndpoint{{Address: "[fd00::5]:80"}}}, Uses: []api.EndpointUse{{Address: "fd00::5"}, {Address: "fd00::6"}}}
	for i := range 4096 {
		s.Wanted = append(s.Wanted, api.Frontend{Frontend: fmt.Sprintf("10.96.0.1:%d/TCP", i), Action: "forward", Endpoints: []string{fmt.Sprintf("10.1.1.1:%d", i)}})
	}
	all := h.lanes(t.Context(), s)
	if len(all) != perPage+2 || len(all[perPage+1].Ends) != 2 {
		t.Errorf("%d lanes, %+v", len(all), all[len(all)-1])
	}
}

// TestSentence: the first sentence has the state, the causes, and their next steps, as
// docs/operations.md has them.
func TestSentence(t *testing.T) {
	service := func(served api.Served, err string) []api.Service {
		return []api.Service{{Key: "a/b", Frontends: 1, Served: served, Error: err}}
	}
	for _, c := range []struct {
		status   api.NodeStatus
		services []api.Service
		want     string
	}{
		{api.NodeStatus{Ready: true, Served: map[api.Served]int{api.ServedAll: 1}}, service(api.ServedAll, ""), "ready, 1 of 1 services are served"},
		{api.NodeStatus{Reason: "link: no such file"}, service(api.ServedWaiting, ""), "not ready|link: no such file|start VPP; if it runs, `troupe check`"},
		{api.NodeStatus{Reason: "nat44: refused"}, nil, "not ready|nat44: refused|`troupe get resync`"},
		{api.NodeStatus{Ready: true}, service(api.ServedRefused, "no endpoint"), "ready, 0 of 1 services are served|a/b is refused: no endpoint|`troupe explain a/b`"},
		{
			api.NodeStatus{Ready: true, Warnings: []string{"interfaces: VPP has no interface for 10.1.1.2", "watch: a.yaml is not an object", "sessions: cannot read"}},
			service(api.ServedPartly, "lost"),
			"ready, 0 of 1 services are served|interfaces: VPP has no interface for 10.1.1.2|let the CNI connect these pods again; `troupe get interfaces`|" +
				"watch: a.yaml is not an object|`troupe check`|sessions: cannot read|`troupe get sessions`|a/b is partly: lost|`troupe explain a/b`",
		},
	} {
		s := say(&c.status, c.services)
		got := s.State
		for _, cause := range s.Causes {
			got += "|" + cause.Text + "|" + cause.Next
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range remedies {
		if first, _, _ := strings.Cut(r.next, "; "); !strings.HasPrefix(first, "`troupe") && !strings.Contains(string(operations), first) {
			t.Errorf("%s: docs/operations.md does not say %q", r.part, first)
		}
	}
}

// TestCausesOfAService: the top of a service has its state and the next step.
func TestCausesOfAService(t *testing.T) {
	share := 0.5
	lanes := func(table uint32) []lane {
		return []lane{{Ends: []end{
			{EndpointUse: api.EndpointUse{Address: "10.1.1.4:80", Node: "a"}, Share: &share, Table: table},
			{EndpointUse: api.EndpointUse{Address: "10.1.1.5:80", Node: "a"}, Share: &share, Table: 7},
		}}}
	}
	for _, c := range []struct {
		served api.Served
		fault  string
		lanes  []lane
		want   []cause
	}{
		{api.ServedAll, "", lanes(7), []cause{{Text: api.ServedAll.Why()}}},
		{api.ServedAll, "", lanes(0), []cause{{Text: api.ServedAll.Why()}, {"10.1.1.5:80 (table 7): its interface is in another table than others", "let the CNI move it; `troupe get interfaces`"}}},
		{api.ServedRefused, "", nil, []cause{{api.ServedRefused.Why(), "make its pods ready; `kubectl -n shop get pods,endpointslices`"}}},
		{api.ServedPartly, "no interface", nil, []cause{{api.ServedPartly.Why(), "let the CNI connect these pods again; `troupe get interfaces`"}}},
		{api.ServedWaiting, "", nil, []cause{{api.ServedWaiting.Why(), "`troupe explain shop/web`"}}},
	} {
		s := oneService{Lanes: c.lanes, ServiceDetail: &api.ServiceDetail{Service: api.Service{Key: "shop/web", Served: c.served}, Uses: []api.EndpointUse{{Fault: c.fault}}}}
		if got := s.causes("a"); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestOneLineForManyErrors: services with one error, parts with one reason and events with one text
// are one line with a count.
func TestOneLineForManyErrors(t *testing.T) {
	services := make([]api.Service, 14)
	for i := range services {
		services[i].Error = "VPP is away"
	}
	services[3].Error = "own"
	if got := aggregate(services); len(got) != 1 || got[0] != (repeated{"VPP is away", 13}) || services[0].Error != "as above" || services[3].Error != "own" {
		t.Errorf("%v, %v", got, services)
	}
	parts := sameReason([]api.Part{{Name: "a", Reason: "away"}, {Name: "b", OK: true}, {Name: "c", Reason: "away"}})
	if len(parts) != 2 || parts[0].Name != "a, c" {
		t.Errorf("%v", parts)
	}
	events := []api.Event{{Text: "lost", Object: "a"}, {Text: "lost", Object: "b"}, {Text: "lost", Object: "c"}, {Text: "found"}, {Text: "lost"}}
	if got := joined(events); len(got) != 3 || got[0].Text != "lost (and 2 more)" || got[2].Text != "lost" || events[0].Text != "lost" {
		t.Errorf("%v", got)
	}
}

// TestWordsAreNotDivided: cells do not wrap, and addresses in prose are words; zeros are grey.
func TestWordsAreNotDivided(t *testing.T) {
	if css, err := web.ReadFile("web/page.css"); err != nil || strings.Contains(string(css), "anywhere") || !strings.Contains(string(css), "th, td { text-align: left; vertical-align: top; padding: .18rem .9rem .18rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }") {
		t.Error("cells may break anywhere")
	}
	if got := words("at 192.168.16.1:300/TCP, <b>"); got != `at <span class="word">192.168.16.1:300/TCP,</span> &lt;b&gt;` {
		t.Errorf("%s", got)
	}
	type row struct {
		Count uint64  `column:"COUNT"`
		Busy  float64 `column:"BUSY"`
	}
	if got := table([]row{{Count: 10}})[1]; got[0] != (cell{"10", "n", ""}) || got[1] != (cell{"0s", "n dim", ""}) {
		t.Error(got)
	}
}
