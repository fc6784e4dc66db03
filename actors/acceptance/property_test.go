package acceptance_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

const (
	sequences = 60 // random clusters
	changes   = 60 // changes of each
)

// TestAnySequenceEndsAlike lets random clusters change in random ways, with duplicates, relists,
// restarts and failures on the way. In the end, the content of VPP is equal to the result of the
// rules for the last state, to the content of a fresh node, and to the report of the troupe.
// Another run of the agent writes nothing.
func TestAnySequenceEndsAlike(t *testing.T) {
	for seed := range uint64(sequences) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			n := newCluster(t)
			n.Start()
			for range changes {
				n.disturb(random)
			}
			n.settled()
			n.drained()
			got := n.texts()
			t.Logf("%d services, %d rows, %d messages changed VPP", len(n.Source.Services()), len(got), n.Writes())
			n.compareWithRules()
			n.compareWithStatus()

			fresh := newCluster(t)
			fresh.copyOf(n, random)
			fresh.Start()
			fresh.settled()
			if diff := cmp.Diff(fresh.texts(), got); diff != "" {
				t.Errorf("rows (-from scratch +after the changes):\n%s", diff)
			}

			before, counters := n.Writes(), n.VPP.Counters().String()
			n.Stop()
			n.Start()
			n.settled()
			if written := n.Writes() - before; written != 0 {
				t.Errorf("another run wrote %d messages, want 0: %+v\nbefore\n%s\nafter\n%s", written, n.link.take(), counters, n.VPP.Counters())
			}
			if diff := cmp.Diff(got, n.texts()); diff != "" {
				t.Errorf("rows (-before +after another run):\n%s", diff)
			}
		})
	}
}

// drained waits until no row has an endpoint that no service names and no connection of dialTo
// keeps. With affinity a row leaves as a whole.
func (n *node) drained() {
	n.Helper()
	named := maps.Clone(n.dialled)
	for _, in := range n.Source.Services() {
		for _, r := range nat44.Plan(service.Resolve(in, n.context, n.Serving), nat44.Config{Node: n.Node, Pads: true, Guarded: true}).Claims() {
			for _, l := range slices.Concat(r.Locals, r.Draining) {
				named[l.String()] = true
			}
		}
	}
	n.Until("endpoints that are gone leave their rows", func() string {
		for frontend, r := range n.heldRows() {
			is := func(e string) bool { return named[e] }
			if rest := slices.DeleteFunc(slices.Clone(r.draining), is); len(rest) > 0 && (r.affinity == 0 || len(rest) == len(r.draining)) {
				return fmt.Sprint(frontend, " has ", rest)
			}
		}
		return ""
	})
	n.settled() // the report of the last change follows its rows
}

// disturb makes one change, sometimes twice, and sometimes has something fail.
func (n *node) disturb(random *rand.Rand) {
	n.Helper()
	one := randomChange(random)
	n.Source.Change(one)
	switch random.IntN(24) {
	case 0, 1, 2, 3:
		n.Source.Change(one) // once more
	case 4, 5:
		n.Source.Refresh()
	case 6:
		n.zone([]string{"a", "b", ""}[random.IntN(3)])
	case 7:
		n.settled()
	case 8:
		n.Stop()
		n.Source.Change(randomChange(random)) // while the agent does not look
		n.Start()
	case 9:
		n.Stop() // at once, half way
		n.Start()
	case 10:
		n.settled()
		paths := []string{address.Renderer("nat44"), address.Registry, address.Interfaces, address.Services}
		n.Kill(paths[random.IntN(len(paths))])
	}
}

// copyOf takes over the cluster of another node, object by object in any order.
func (n *node) copyOf(other *node, random *rand.Rand) {
	n.Helper()
	n.setNode(other.context.GetNode())
	var all []func(*kube.Store)
	for _, in := range other.Source.Snapshot().GetServices() {
		if s := in.GetService(); s != nil {
			all = append(all, func(store *kube.Store) { store.Set(s, nil) })
		}
		for _, slice := range in.GetSlices() {
			all = append(all, func(store *kube.Store) { store.Set(slice, nil) })
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, one := range all {
		n.Source.Change(one)
	}
}

// compareWithRules compares the rows in VPP with what the pure rules make of the cluster.
func (n *node) compareWithRules() {
	n.Helper()
	inputs := n.Source.Services()
	created, rows := map[rule.Key]int64{}, map[rule.Key]nat44.Row{}
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		// of two services of the same age the smaller key wins
		view := service.Resolve(inputs[key], n.context, n.Serving)
		plan := nat44.Plan(view, nat44.Config{Node: n.Node, Pads: true, Guarded: true})
		for _, planned := range plan.Claims() {
			first, taken := rows[planned.Key]
			if !taken || planned.Rank < first.Rank || planned.Rank == first.Rank && view.GetCreated() < created[planned.Key] {
				created[planned.Key], rows[planned.Key] = view.GetCreated(), planned
			}
		}
	}
	want := map[string]string{}
	for key, planned := range rows {
		if len(planned.Locals) == 0 {
			continue // it is refused
		}
		var endpoints []string
		for _, l := range planned.Locals {
			endpoints = append(endpoints, l.String())
		}
		slices.Sort(endpoints)
		want[key.String()] = fmt.Sprint(endpoints, planned.Affinity)
	}
	got := map[string]string{}
	for frontend, r := range n.rows() {
		got[frontend] = fmt.Sprint(r.endpoints, r.affinity)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		n.Errorf("rows (-rules +VPP):\n%s", diff)
	}
}

// compareWithStatus compares the rows in VPP with the rows in the report of the troupe.
func (n *node) compareWithStatus() {
	n.Helper()
	var said []string
	for _, status := range n.Statuses() {
		for _, ack := range status.GetRenders() {
			for _, r := range ack.GetRows() {
				if r.GetInSync() {
					said = append(said, r.GetVip())
				}
			}
		}
	}
	slices.Sort(said)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(n.rows())), said); diff != "" {
		n.Errorf("rows (-VPP +status):\n%s", diff)
	}
}
