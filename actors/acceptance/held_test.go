package acceptance_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

var heldChanges = flag.Int("changes", 200, "number of changes of the cluster during which TestHeldConnections holds connections; CI makes 1000")

// held is a TCP connection that a test keeps open.
type held struct {
	frontend string
	client   netip.Addr
	endpoint netip.AddrPort
	open     *simulator.Connection
}

// Why a connection to an endpoint that its service still has was cut. VPP causes the first two by
// itself: the deletion of a backend, or of a row, ends the sessions to the address and port through
// all rows. The others are rows that were deleted and added again although they have the endpoint
// before and after, and why VPP leaves no other way. Every other cause is an error.
const (
	cutByLeaving  = "VPP: the endpoint left another row"
	cutByRow      = "VPP: another row with the endpoint went"
	cutByReplaced = "a row with the endpoint was replaced: "

	replacedAffinity = "VPP: the affinity of a row cannot be changed"
	replacedClients  = "VPP: a row with affinity lost an endpoint, and its clients would go on to be sent there"
	// This one comes with time: also in a step that restarts something.
	replacedDrained = "VPP: an endpoint that drained in a row with affinity is in no other row that serves"
)

// TestHeldConnections keeps connections through several services open while everything else
// changes. The services themselves stay as they are; some of their endpoints belong to other
// services too. A cut needs a cause among the writes, and no restart may be one. Causes are
// counted; each kind of unexpected cause fails the test once.
func TestHeldConnections(t *testing.T) {
	h := newHolding(t, 1)
	h.Start()
	h.settled()
	h.dial()
	for i := range *heldChanges {
		h.step = i
		what := h.disturb()
		h.settled()
		h.look(what)
	}
	h.print()
	if h.dialled == 0 || h.exchanges < *heldChanges*len(h.services) {
		t.Errorf("%d connections, %d exchanges: this test has not looked", h.dialled, h.exchanges)
	}
}

// holding is a node with held connections.
type holding struct {
	*node
	random *rand.Rand
	step   int
	// services are held; churn are the others that exist, with their endpoints.
	services []heldService
	churn    map[int]bool
	zoneNow  string
	kills    int

	connections []*held
	before      map[string]row
	dialled     int
	exchanges   int
	changes     map[string]int
	cuts        map[string]int
	example     map[string]string
}

// heldService is a service whose connections are held. It does not change.
type heldService struct {
	serviceSpec
	endpoints []netip.Addr
}

// Endpoints of this node and elsewhere: the first ones belong to held services alone, the shared
// ones to all services, the rest to churn.
const (
	sharedFrom, sharedTo = 8, 11
	churnFrom, churnTo   = 11, 20
	heldPort             = 8080
	churnServices        = 12
	manyEndpoints        = 4 // this one sometimes has many
)

func newHolding(t *testing.T, seed uint64) *holding {
	t.Helper()
	h := &holding{
		node: newCluster(t), random: rand.New(rand.NewPCG(seed, 3)), churn: map[int]bool{}, zoneNow: "a",
		changes: map[string]int{}, cuts: map[string]int{}, example: map[string]string{},
	}
	h.services = []heldService{
		{serviceSpec{name: "plain", ip: "10.96.1.1"}, []netip.Addr{localPod(0), localPod(1), remotePod(0)}},
		{serviceSpec{name: "node-port", ip: "10.96.1.2", nodePort: 30001}, []netip.Addr{localPod(2), remotePod(1)}},
		{serviceSpec{name: "local-policy", ip: "10.96.1.3", nodePort: 30002, external: "203.0.113.9", etpLocal: true}, []netip.Addr{localPod(3), remotePod(2)}},
		{serviceSpec{name: "sticky", ip: "10.96.1.4", affinity: 10800}, []netip.Addr{localPod(4), remotePod(3)}},
		{serviceSpec{name: "shared", ip: "10.96.1.5"}, []netip.Addr{localPod(5), localPod(8), localPod(9), remotePod(8), remotePod(9)}},
		{serviceSpec{name: "shared-port", ip: "10.96.1.6", nodePort: 30003}, []netip.Addr{localPod(6), localPod(10), remotePod(10)}},
	}
	for _, s := range h.services {
		h.apply(s.serviceSpec, heldPort, s.endpoints...)
	}
	// A younger service wants an address that a held one has.
	rival := serviceSpec{name: "a-rival", ip: "10.96.1.9", external: h.services[2].external, created: 9}
	h.apply(rival, heldPort, localPod(7), remotePod(7))
	return h
}

// dial opens connections from every kind of client to every row of the held services until each
// endpoint has one of each.
func (h *holding) dial() {
	h.Helper()
	h.before = h.heldRows()
	for _, frontend := range slices.Sorted(maps.Keys(h.before)) {
		if !h.holds(frontend) {
			continue
		}
		for _, client := range []netip.Addr{localPod(22), localPod(23), netip.MustParseAddr("198.51.100.7")} {
			h.dialAll(frontend, client)
		}
	}
}

// holds reports whether a frontend belongs to a held service.
func (h *holding) holds(frontend string) bool {
	return slices.ContainsFunc(h.services, func(s heldService) bool {
		return strings.HasPrefix(frontend, s.ip+":") || s.nodePort != 0 && strings.HasPrefix(frontend, fmt.Sprint(nodeAddress, ":", s.nodePort)) ||
			s.external != "" && strings.HasPrefix(frontend, s.external+":")
	})
}

// dialAll opens one connection of a client to each endpoint of a row that has none.
func (h *holding) dialAll(frontend string, client netip.Addr) {
	h.Helper()
	at := netip.MustParseAddrPort(strings.TrimSuffix(frontend, "/TCP"))
	missing := map[string]bool{}
	for _, e := range h.before[frontend].endpoints {
		missing[e] = true
	}
	for _, c := range h.connections {
		if c.frontend == frontend && c.client == client {
			delete(missing, c.endpoint.String())
		}
	}
	for range 40 { // with affinity a client gets one endpoint only
		if len(missing) == 0 {
			return
		}
		open, err := h.VPP.Dial(simulator.Packet{
			In: h.places.of(client), Src: netip.AddrPortFrom(client, h.clientPort()), Dst: at, Proto: simulator.ProtoTCP,
		})
		if err != nil {
			h.Fatalf("step %d: %s: %v", h.step, frontend, err)
		}
		endpoint := open.Opened().Dst
		if !missing[endpoint.String()] {
			continue
		}
		delete(missing, endpoint.String())
		h.connections = append(h.connections, &held{frontend, client, endpoint, open})
		h.dialled++
	}
}

// look uses every connection. One that was cut must have a cause in what was written; then it is
// opened again.
func (h *holding) look(what string) {
	h.Helper()
	h.changes[what]++
	after, writes := h.heldRows(), whole(h.link.take())
	var kept []*held
	var cut []*held
	for _, c := range h.connections {
		h.exchanges++
		err := c.open.Exchange()
		if err == nil {
			kept = append(kept, c)
			continue
		}
		cut = append(cut, c)
		cause := causeOfCut(c, h.before, after, writes)
		switch {
		case cause == "":
			cause = "without a cause"
		case !changesServices(what) && cause != cutByReplaced+replacedDrained:
			cause = "by a restart: " + cause
		}
		if h.cuts[cause] == 0 && !necessary(cause) {
			h.Errorf("step %d, %s: connection of %s through %s to %s was cut %s: %v\nwritten: %v", h.step, what, c.client, c.frontend,
				c.endpoint, cause, err, writes)
		}
		h.cuts[cause]++
		if h.example[cause] == "" {
			h.example[cause] = fmt.Sprintf("step %d, %s: %s through %s to %s; written: %v", h.step, what, c.client, c.frontend, c.endpoint, writes)
		}
	}
	h.connections, h.before = kept, after
	for _, c := range cut {
		h.dialAll(c.frontend, c.client)
	}
}

// necessary reports whether VPP leaves no way to make a change without the cut. Nothing of that
// kind changes while the agent restarts.
func necessary(cause string) bool {
	return slices.Contains([]string{
		cutByLeaving, cutByRow, cutByReplaced + replacedAffinity,
		cutByReplaced + replacedClients, cutByReplaced + replacedDrained,
	}, cause)
}

// changesServices reports whether a change makes any service serve something else. Restarts do not.
func changesServices(what string) bool {
	return slices.Contains([]string{changeLabel, changeAdded, changeRemoved, changeEndpoints}, what)
}

// causeOfCut finds the write that ended a session to an endpoint.
func causeOfCut(c *held, before, after map[string]row, writes []write) string {
	endpoint := c.endpoint.String()
	for _, w := range writes {
		had, has := slices.Contains(before[w.frontend].all(), endpoint), slices.Contains(after[w.frontend].all(), endpoint)
		switch {
		case w.add:
		case !w.row && slices.Contains(w.backends, c.endpoint):
			return cutByLeaving
		case w.row && slices.ContainsFunc(lost(w, after[w.frontend]), func(e string) bool { return drainedAlone(e, before[w.frontend], after) }):
			return cutByReplaced + replacedDrained
		case w.row && !has && touched(w.frontend, c.endpoint, before, writes):
			return cutByRow
		case w.row && had && has:
			return cutByReplaced + replacedBecause(before[w.frontend], after[w.frontend])
		case w.row && has && len(lost(w, after[w.frontend])) > 0:
			return cutByReplaced + replacedClients
		case w.row && has && after[w.frontend].affinity > 0 && len(before[w.frontend].endpoints) == 0:
			return cutByReplaced + replacedClients
		case w.row && has:
			return cutByReplaced + "several changes at once"
		}
	}
	return ""
}

// whole returns the writes with one for each row that is deleted: the entries of a large one are
// deleted one by one before it.
func whole(writes []write) (all []write) {
	entry := func(of, w write) bool { return !w.row && !w.add && w.frontend == of.frontend }
	for _, w := range writes {
		for n := len(all) - 1; w.row && !w.add && n >= 0 && entry(w, all[n]); n-- {
			w.backends = slices.Concat(all[n].backends, w.backends)
			all = all[:n]
		}
		all = append(all, w)
	}
	return all
}

// lost are the endpoints that a row with affinity had when it was deleted, and has no more.
func lost(deleted write, after row) (all []string) {
	for _, e := range deleted.backends {
		if after.affinity > 0 && e.Port() == heldPort && !slices.Contains(after.all(), e.String()) {
			all = append(all, e.String())
		}
	}
	return all
}

// drainedAlone reports whether an endpoint did not serve before the row lost it, and no row has it
// any more that serves.
func drainedAlone(e string, before row, after map[string]row) bool {
	has := func(r row) bool { return len(r.endpoints) > 0 && slices.Contains(r.all(), e) }
	return !slices.Contains(before.endpoints, e) && !slices.ContainsFunc(slices.Collect(maps.Values(after)), has)
}

// touched reports whether a row had an endpoint at some time: before, or by a write since.
func touched(frontend string, endpoint netip.AddrPort, before map[string]row, writes []write) bool {
	return slices.Contains(before[frontend].all(), endpoint.String()) || slices.ContainsFunc(writes, func(w write) bool {
		return w.add && w.frontend == frontend && slices.Contains(w.backends, endpoint)
	})
}

// replacedBecause says what of a row cannot be changed in place.
func replacedBecause(before, after row) string {
	flag := func(r row) bool { return strings.Contains(r.text, " twice-nat") }
	lost := slices.ContainsFunc(before.all(), func(e string) bool { return !slices.Contains(after.all(), e) })
	switch {
	case flag(before) != flag(after):
		return "avoidable: the masquerading changed"
	case before.affinity != after.affinity:
		return replacedAffinity
	case before.affinity > 0 && lost:
		return replacedClients
	case before.text == after.text:
		return "avoidable: it is as before"
	default:
		return "avoidable: only the tag changed"
	}
}

// all are the endpoints that have connections through the row.
func (r row) all() []string { return slices.Concat(r.endpoints, r.draining) }

// Changes of the cluster; the others are failures and restarts.
const (
	changeLabel     = "node label"
	changeAdded     = "service added"
	changeRemoved   = "service removed"
	changeEndpoints = "endpoints of others"
)

// disturb makes one random change of everything but the held services, and says which.
func (h *holding) disturb() string {
	h.Helper()
	switch roll := h.random.IntN(100); {
	case roll < 3:
		h.kills = 0
		h.Stop()
		h.checkAll("while no agent runs")
		h.Start()
		return "agent restart"
	case roll < 7 && h.kills < 6: // a supervisor gives up after ten failures in ten seconds
		h.kills++
		paths := []string{address.Renderer("nat44"), address.Registry, address.Interfaces, address.Link}
		path := paths[h.random.IntN(len(paths))]
		h.Kill(path)
		return "killed " + path
	case roll < 12:
		h.zoneNow = map[string]string{"a": "b", "b": "", "": "a"}[h.zoneNow]
		h.zone(h.zoneNow)
		return changeLabel
	case roll < 22 && len(h.churn) > 3:
		i := h.someChurn()
		delete(h.churn, i)
		h.Source.Change(func(s *kube.Store) {
			s.Delete("Service", fmt.Sprint("default/churn-", i))
			s.Delete("EndpointSlice", fmt.Sprint("default/churn-", i, "-1"))
		})
		return changeRemoved
	case roll < 40 && len(h.churn) < churnServices:
		i := h.random.IntN(churnServices)
		h.churn[i] = true
		h.change(i)
		return changeAdded
	default:
		if len(h.churn) == 0 {
			h.churn[0] = true
		}
		h.change(h.someChurn())
		return changeEndpoints
	}
}

// checkAll uses every connection; none may be cut.
func (h *holding) checkAll(when string) {
	h.Helper()
	for _, c := range h.connections {
		if err := c.open.Exchange(); err != nil {
			h.Errorf("step %d, %s: %v", h.step, when, err)
		}
	}
}

func (h *holding) someChurn() int {
	all := slices.Sorted(maps.Keys(h.churn))
	return all[h.random.IntN(len(all))]
}

// change gives one of the other services new endpoints: own ones, and some that held services have
// as well.
func (h *holding) change(i int) {
	s := serviceSpec{name: fmt.Sprint("churn-", i), ip: fmt.Sprint("10.96.2.", i+1)}
	switch i % 4 {
	case 1:
		s.nodePort = uint32(31000 + i)
	case 2:
		s.affinity = 10800
	}
	slice := s.slice(heldPort)
	here := i%4 == 1 && h.random.IntN(2) == 0 // no endpoint elsewhere
	add := func(from, to int) {
		for k := from; k < to; k++ {
			for _, a := range []netip.Addr{localPod(k), remotePod(k)} {
				if h.random.IntN(4) > 0 || here && !h.places.here(a) {
					continue
				}
				e := endpointAt(a)
				if i%4 == 3 {
					e.ZoneHints = []string{[]string{"a", "b"}[k%2]}
				}
				slice.Endpoints = append(slice.Endpoints, e)
			}
		}
	}
	add(churnFrom, churnTo)
	if i < churnServices/2 {
		add(sharedFrom, sharedTo)
	}
	if i == manyEndpoints && h.random.IntN(2) == 0 {
		for k := range 40 {
			slice.Endpoints = append(slice.Endpoints, endpointAt(remotePod(100+k)))
		}
	}
	h.Source.Change(func(store *kube.Store) {
		store.Set(s.service(), nil)
		store.Set(slice, nil)
	})
}

// print writes what happened.
func (h *holding) print() {
	var b strings.Builder
	fmt.Fprintf(&b, "%d connections held, %d dialled in all, %d exchanges\n", len(h.connections), h.dialled, h.exchanges)
	for _, what := range slices.Sorted(maps.Keys(h.changes)) {
		fmt.Fprintf(&b, "  %5d %s\n", h.changes[what], what)
	}
	fmt.Fprintf(&b, "cut, although the service still has the endpoint:\n")
	for _, cause := range slices.Sorted(maps.Keys(h.cuts)) {
		fmt.Fprintf(&b, "  %5d %s\n", h.cuts[cause], cause)
		fmt.Fprintf(&b, "        %s\n", h.example[cause])
	}
	h.Log(b.String())
}
