package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// lane is a part of the map of a service: frontends that treat the same clients alike.
type lane struct {
	From, Action string
	Frontends    []api.Frontend
	Ends         []end
}

// end is an endpoint on the map.
type end struct {
	api.EndpointUse
	// Interface of VPP that leads to it; "" = none is known.
	Interface string
	// Share of new connections by the row in VPP; nil = VPP holds no row for it, which may be an
	// approximation.
	Share        *float64
	Approximated bool
	// Table of VPP in which the row reaches it.
	Table uint32
	// Sessions counts its NAT sessions; nil = they were not read.
	Sessions *int
	// Draining describes an endpoint that gets no new connections; "" = it gets some.
	Draining string
}

// lanes draws the map. Endpoints without new connections follow as a lane of their own.
func (h *handler) lanes(ctx context.Context, s *oneService) (all []lane) {
	interfaces, err := h.Source.Interfaces(ctx)
	if err != nil {
		interfaces = &api.Interfaces{} // the map goes without them
	}
	m := newMapped(s, interfaces, h.Node)
	for _, f := range s.Wanted {
		like := func(l lane) bool {
			return l.From == f.From && l.Action == f.Action && slices.Equal(l.Frontends[0].Endpoints, f.Endpoints)
		}
		if n := slices.IndexFunc(all, like); n >= 0 {
			all[n].Frontends = append(all[n].Frontends, f)
			continue
		}
		if len(all) == perPage { // a service may have thousands
			all = append(all, lane{Action: "further frontends, see Wanted"})
			break
		}
		l := lane{From: f.From, Action: f.Action, Frontends: []api.Frontend{f}}
		for _, address := range f.Endpoints[:min(len(f.Endpoints), perPage)] {
			l.Ends = append(l.Ends, m.end(address, f.Frontend))
		}
		all = append(all, l)
	}
	rest := lane{Action: "no new connections"}
	for _, d := range s.Draining {
		e := m.end(d.Address, "")
		e.Draining = d.State()
		rest.Ends = append(rest.Ends, e)
	}
	for _, u := range s.Uses {
		drains := slices.ContainsFunc(s.Draining, func(d api.DrainingEndpoint) bool { return host(d.Address) == u.Address })
		if u.Forwards == 0 && !drains {
			rest.Ends = append(rest.Ends, end{EndpointUse: u, Draining: u.Why})
		}
	}
	if len(rest.Ends) > 0 {
		all = append(all, rest)
	}
	return all
}

// mapped has the data of the endpoints of a map.
type mapped struct {
	s          *oneService
	interfaces *api.Interfaces
	node       string
	uses       map[string]api.EndpointUse // by address without port
	rows       map[string]api.Row         // by frontend
	pods       map[string]string          // interface by pod
	sessions   map[string]int             // by endpoint
}

func newMapped(s *oneService, interfaces *api.Interfaces, node string) *mapped {
	m := &mapped{s, interfaces, node, map[string]api.EndpointUse{}, map[string]api.Row{}, map[string]string{}, map[string]int{}}
	for _, u := range s.ServiceDetail.Uses {
		m.uses[u.Address] = u
	}
	for _, row := range s.InVPP {
		m.rows[row.VIP] = row
	}
	for _, i := range interfaces.Items {
		for _, pod := range i.Pods {
			m.pods[pod] = i.Name
		}
	}
	if s.Sessions != nil {
		for _, session := range s.Sessions.Items {
			if !session.Expired {
				m.sessions[session.Backend]++
			}
		}
	}
	return m
}

// host is the address of "ip:port".
func host(address string) string {
	return strings.Trim(address[:max(strings.LastIndexByte(address, ':'), 0)], "[]")
}

// end is the endpoint "ip:port" of a frontend.
func (m *mapped) end(address, frontend string) end {
	ip := host(address)
	e := end{EndpointUse: m.uses[ip]}
	e.Address, e.Interface = address, m.pods[e.Pod]
	if e.Interface == "" && e.Node != "" && e.Node != m.node {
		e.Interface = m.interfaces.Uplink
	}
	e.Approximated = slices.ContainsFunc(m.s.Approximations, func(a api.FrontendApproximation) bool { return a.Frontend == frontend })
	var all, own uint32
	for _, l := range m.rows[frontend].Locals {
		if all += l.Weight; l.Address == address {
			own, e.Table = l.Weight, l.Table
		}
	}
	if own > 0 {
		share := float64(own) / float64(all)
		e.Share = &share
	}
	if n := m.sessions[address]; m.s.Sessions != nil {
		e.Sessions = &n
	}
	return e
}

// sentence is the first sentence of the overview, with the causes of its state.
type sentence struct {
	State  string
	Causes []cause
}

// cause is a fault with the next step, in which commands stand between backticks.
type cause struct{ Text, Next string }

// remedies are the next steps for a part of readiness that is not well and says something, as
// docs/operations.md has them; the first that fits counts. Others have troupe check.
var remedies = []struct{ part, says, next string }{
	{"link", "", "start VPP; if it runs, `troupe check`"},
	{"watch", "the API server does not answer", "check the API server, and `kubernetes.apiServer`; `troupe check`"},
	{"interfaces", "has no interface for", reconnect},
	{"interfaces", "", "`troupe get interfaces`"},
	{"sessions", "nat44.sessionLimitMax", "raise `nat44.sessionLimitMax`; `troupe get sessions`"},
	{"sessions", "", "`troupe get sessions`"},
	{"nat44", "", "`troupe get resync`"},
	{"cnat", "", "`troupe get resync`"},
	{"routes", "", "`troupe get resync`"},
}

// reconnect is the next step for pods without an interface.
const reconnect = "let the CNI connect these pods again; `troupe get interfaces`"

// remedied is a reason of readiness with its remedy.
func remedied(reason string) cause {
	part, says, _ := strings.Cut(reason, ":")
	for _, r := range remedies {
		if r.part == part && strings.Contains(says, r.says) {
			return cause{reason, r.next}
		}
	}
	return cause{reason, "`troupe check`"}
}

// say makes the sentence. Services are ordered, the worst first.
func say(s *api.NodeStatus, services []api.Service) sentence {
	if !s.Ready {
		return sentence{"not ready", []cause{remedied(s.Reason)}}
	}
	said := sentence{State: fmt.Sprintf("ready, %d of %d services are served", s.Served[api.ServedAll], len(services))}
	for _, w := range s.Warnings {
		said.Causes = append(said.Causes, remedied(w))
	}
	for i := range services {
		if w := &services[i]; w.Served != api.ServedAll && w.Frontends > 0 {
			said.Causes = append(said.Causes, cause{fmt.Sprintf("%s is %s: %s", w.Key, w.Served, cmp.Or(w.Error, w.Served.Why())), "`troupe explain " + w.Key + "`"})
			break
		}
	}
	return said
}

// causes are what is to be said at the top of a service, with the next steps.
func (s *oneService) causes(node string) (all []cause) {
	namespace, _, _ := strings.Cut(s.Key, "/")
	lost := func(u api.EndpointUse) bool { return u.Fault != "" }
	switch {
	case s.Served == api.ServedRefused:
		all = append(all, cause{s.Served.Why(), "make its pods ready; `kubectl -n " + namespace + " get pods,endpointslices`"})
	case slices.ContainsFunc(s.ServiceDetail.Uses, lost):
		all = append(all, cause{s.Served.Why(), reconnect})
	case s.Served == api.ServedAll:
		all = append(all, cause{Text: s.Served.Why()})
	default:
		all = append(all, cause{s.Served.Why(), "`troupe explain " + s.Key + "`"})
	}
	tables := map[string]uint32{} // of the endpoints on this node, which the CNI connects
	for _, l := range s.Lanes {
		for _, e := range l.Ends {
			if e.Node == node && e.Share != nil {
				tables[e.Address] = e.Table
			}
		}
	}
	for _, address := range slices.Sorted(maps.Keys(tables)) {
		table := tables[address]
		if table != 0 && slices.Contains(slices.Collect(maps.Values(tables)), 0) {
			all = append(all, cause{api.Local{Address: address, Table: table}.Text() + ": its interface is in another table than others", "let the CNI move it; `troupe get interfaces`"})
			break
		}
	}
	return all
}

// repeated is a text that several objects share.
type repeated struct {
	Text string
	N    int
}

// aggregate returns the errors that at least three services share, and removes them from these.
func aggregate(services []api.Service) (all []repeated) {
	counts := map[string]int{}
	for i := range services {
		counts[services[i].Error]++
	}
	delete(counts, "")
	for text, n := range counts {
		if n > 2 {
			all = append(all, repeated{text, n})
		}
	}
	slices.SortFunc(all, func(a, b repeated) int { return cmp.Or(b.N-a.N, strings.Compare(a.Text, b.Text)) })
	for i := range services {
		if counts[services[i].Error] > 2 {
			services[i].Error = "as above"
		}
	}
	return all
}

// joined merges neighbouring events that differ only in actor and object.
func joined(events []api.Event) (out []api.Event) {
	more := 0
	for _, e := range events {
		if n := len(out) - 1; n >= 0 && out[n].Kind == e.Kind && out[n].Error == e.Error && strings.TrimSuffix(out[n].Text, suffix(more)) == e.Text && len(e.Operations) == 0 {
			out[n].Text = e.Text + suffix(more+1)
			more++
			continue
		}
		out, more = append(out, e), 0
	}
	return out
}

func suffix(more int) string {
	if more == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", more)
}
