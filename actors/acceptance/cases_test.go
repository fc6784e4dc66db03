package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// TestCases runs every case of the acceptance file, unedited and with all its steps, through a
// whole node, three times. First VPP owns the addresses of the node and the cluster exists from the
// start. Then the host owns them and the cluster comes object by object. Then VPP has no access
// lists, so that less can be exact.
func TestCases(t *testing.T) {
	file := kubetest.Load(t)
	tallies := map[owner]*tally{vppOwns: newTally(), hostOwns: newTally(), bareVPP: newTally()}
	t.Run("case", func(t *testing.T) {
		for i := range file.Cases {
			c := &file.Cases[i]
			t.Run(c.Name, func(t *testing.T) {
				for owns, counts := range tallies {
					t.Run(string(owns), func(t *testing.T) {
						t.Parallel()
						newRun(t, c, owns, counts, uint64(i)).do()
					})
				}
			})
		}
	})
	for _, owns := range []owner{vppOwns, hostOwns, bareVPP} {
		tallies[owns].print(t, fmt.Sprintf("%s, %d cases, %s", file.Kubernetes, len(file.Cases), owns))
	}
}

// run is one case on one node.
type run struct {
	*node
	file   *kubetest.Case
	self   kubetest.Node
	owns   owner
	tally  *tally
	random *rand.Rand
	// step is the name of the present step; "start" at first.
	step string
	// before are the rows in VPP before the step.
	before map[string]row
	// mutations is the number of messages that had changed VPP before the step.
	mutations uint64
	// built counts interfaces that came or went in the step: roles are written for them.
	built int
	flows map[string]flow
	// inputs are the services before the step, ended the sessions that were ended by then.
	inputs map[string]*messages.ServiceInput
	ended  uint64
	// used are the addresses in the case, vips the addresses of its frontends without the
	// node's.
	used, vips map[netip.Addr]bool
	// pod and remote are generated clients.
	pod, remote netip.Addr
}

func newRun(t *testing.T, c *kubetest.Case, owns owner, counts *tally, seed uint64) *run {
	t.Helper()
	t.Logf("%s (%s)", c.Description, c.Source)
	addresses, err := service.ParseNodePortAddresses(c.Config.NodePortAddresses)
	must(t, err)
	serving := service.Config{
		NodePortAddresses: addresses, ClusterCIDRs: prefixes(t, c.Config.ClusterCIDRs), ServiceCIDRs: prefixes(t, c.Config.ServiceCIDRs),
		MasqueradeAll: c.Config.MasqueradeAll,
	}
	var without []string
	if owns == bareVPP {
		without = []string{"acl"}
	}
	r := &run{
		node: newNode(t, c.Node.Name, serving, without...), file: c, self: c.Node, owns: owns, tally: counts, random: rand.New(rand.NewPCG(seed, 1)),
		step: "start", flows: map[string]flow{},
	}
	if c.Level != "" && c.Level != "kube-proxy-1.36-exact" {
		t.Fatalf("unknown level %q", c.Level)
	}
	r.build(owns, c.Node.Addresses)
	r.setCaseNode(c.Node)
	r.chooseClients()
	return r
}

// do runs the case.
func (r *run) do() {
	r.tally.count("cases", 1)
	r.before = map[string]row{}
	objects := r.convert(r.file.Services, r.file.EndpointSlices)
	r.connect(objects)
	synced := r.file.Synced == nil || r.file.Synced.Services && r.file.Synced.EndpointSlices
	if len(r.file.Preexisting) > 0 {
		r.leaveBehind(objects)
	}
	if !synced {
		r.Source.Change(objects.put)
		r.checkUnsynced(&r.file.Outcome)
		return
	}
	if r.owns != hostOwns || len(r.file.Preexisting) > 0 {
		r.Source.Change(objects.put)
		r.Start()
	} else {
		r.Start()
		for _, one := range objects.shuffled(r.random) {
			r.Source.Change(one)
		}
	}
	r.check(&r.file.Outcome)
	for i := range r.file.Steps {
		s := &r.file.Steps[i]
		r.tally.count("steps", 1)
		r.step = s.Name
		changed := r.convert(s.Apply.Services, s.Apply.EndpointSlices)
		changed.deleted = s.Delete
		r.connect(changed)
		if s.Node != nil {
			r.setCaseNode(*s.Node)
		}
		if s.ProxyHealthy != nil {
			r.checkups.healthy.Store(*s.ProxyHealthy)
		}
		r.Source.Change(changed.put)
		r.check(&s.Outcome)
	}
}

// check waits until the node has settled and compares everything that the outcome says.
func (r *run) check(o *kubetest.Outcome) {
	r.Helper()
	r.settled()
	after := r.rows()
	r.checkWrites(o, after)
	statuses := r.Statuses()
	reports := r.reportsOf(statuses)
	found := r.compareRows(o.Expect, after)
	found = append(found, r.checkPackets(o.Packets, o.Expect)...)
	found = append(found, r.generate(o.Expect)...)
	found = append(found, r.checkFlows(o.UDPFlows)...)
	found = append(found, r.checkAffinity(o.Expect, portsOf(statuses))...)
	r.judge(found, reports)
	r.openFlows(o.Expect)
	r.before, r.mutations = after, r.Writes()
	r.checkHealth(o.HealthChecks, statuses)
	r.checkMetrics(o.Metrics, statuses)
	r.checkCleanup(o.UDPFlowCleanupRequired)
}

// checkUnsynced runs a troupe whose source has not listed everything: it must not write.
func (r *run) checkUnsynced(o *kubetest.Outcome) {
	r.Helper()
	const dump = "nat44_lb_static_mapping_dump"
	before := r.VPP.Counters()
	r.Source.Hold("endpoint slices are not listed yet", true)
	r.Start()
	r.Until("VPP read", func() string {
		if r.VPP.Counters().Of(dump) == before.Of(dump) {
			return "no dump yet"
		}
		return ""
	})
	time.Sleep(5 * timing.Retry) // nothing happens: there is nothing to wait for
	if n := r.Writes() - before.Mutating(); n != 0 {
		r.Errorf("%d messages changed VPP before everything was listed, want 0: %+v\n%s", n, r.link.take(), r.VPP.Counters().String())
	}
	r.judge(r.compareRows(o.Expect, r.rows()), nil)
	if len(o.Packets)+len(o.UDPFlows)+len(o.HealthChecks) > 0 || o.Metrics != nil || len(r.file.Steps) > 0 {
		r.Error("this test does not look at packets, flows and steps of a case that is not synced")
	}
}

// checkWrites compares the rows that were written with the rows that may be: the rows in touched,
// and the rows that differ.
func (r *run) checkWrites(o *kubetest.Outcome, after map[string]row) {
	r.Helper()
	writes, routed := r.link.take(), r.link.takeRoutes()
	for _, frontend := range written(writes) {
		if r.before[frontend].text == after[frontend].text {
			r.Errorf("%s: %s was written and is as before", r.step, frontend)
		}
		if o.Touched != nil && !slices.Contains(*o.Touched, frontend) {
			r.Errorf("%s: %s was written, only %v may", r.step, frontend, *o.Touched)
		}
	}
	if o.Touched == nil {
		return
	}
	r.tally.count("touched lists", 1)
	for _, addr := range routed {
		if !slices.ContainsFunc(*o.Touched, func(frontend string) bool { return hostOf(frontend) == addr.String() }) {
			r.Errorf("%s: the route of %s was written, only those of %v may", r.step, addr, *o.Touched)
		}
	}
	if n := r.Writes() - r.mutations; r.built == 0 && r.step != "start" && n != uint64(len(writes)+len(routed)) {
		r.Errorf("%s: %d messages changed VPP, %d of them rows and %d routes, want no others", r.step, n, len(writes), len(routed))
	}
}

// compareRows compares the rows in VPP with the expected ones, in both directions.
func (r *run) compareRows(expect []kubetest.Row, rows map[string]row) []deviation {
	r.Helper()
	var found []deviation
	known := map[string]bool{}
	for _, want := range expect {
		r.tally.count("rows", 1)
		known[want.Frontend] = true
		to := r.target(want.Frontend)
		held, there := rows[want.Frontend]
		d := deviation{frontend: want.Frontend, from: want.From}
		if to.at.Addr().Is6() { // whatever is wanted, VPP does not hear of it
			d.aspect, d.want, d.got = aspectRow, want.Action, nothing
			found = append(found, d)
			continue
		}
		switch {
		case want.Action == drop && there && r.dropped(to, want.From):
			continue // in front of the row, which is for the others
		case want.Action != forward && there && len(rowsOf(expect, want.Frontend)) == 1:
			d.aspect, d.want, d.got = aspectRow, want.Action, held.text
		case want.Action != forward && there:
			d.aspect, d.want, d.got = aspectRow, want.Action, forward
		case want.Action == forward && !there:
			d.aspect, d.want, d.got = aspectRow, forward, nothing
		case want.Action != forward:
			continue
		case !slices.Equal(slices.Sorted(slices.Values(want.Endpoints)), held.endpoints):
			d.aspect, d.want, d.got = aspectEndpoints, fmt.Sprint(want.Endpoints), fmt.Sprint(held.endpoints)
		case want.AffinitySeconds != held.affinity:
			d.aspect, d.want, d.got = aspectAffinity, fmt.Sprint(want.AffinitySeconds), fmt.Sprint(held.affinity)
		default:
			continue
		}
		found = append(found, d)
	}
	for frontend, held := range rows {
		if !known[frontend] {
			found = append(found, deviation{frontend: frontend, from: "any", aspect: aspectRow, want: nothing, got: held.text})
		}
	}
	return found
}

// rowsOf are the expected rows of one frontend.
func rowsOf(expect []kubetest.Row, frontend string) []kubetest.Row {
	var all []kubetest.Row
	for _, row := range expect {
		if row.Frontend == frontend {
			all = append(all, row)
		}
	}
	return all
}
