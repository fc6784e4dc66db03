package render

import (
	"fmt"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// BenchmarkPass measures a snapshot of 5,000 services with three instances each, which the cluster
// has already: a snapshot equal to the one before, and a snapshot that is compared with the
// cluster.
func BenchmarkPass(b *testing.B) {
	snapshot := catalog.Snapshot{Complete: true}
	for i := range 5000 {
		s := web()
		s.Name = fmt.Sprintf("s%d", i)
		for j := range 3 {
			s.Instances = append(s.Instances, catalog.Instance{Address: fmt.Sprintf("192.0.%d.%d", 2+i%50, 1+(i*3+j)%250)})
		}
		snapshot.Services = append(snapshot.Services, s)
	}
	c, limits := newCluster(b), catalog.DefaultLimits()
	snapshot = catalog.Clean(snapshot, limits)
	c.reconcile(options, snapshot.Services...)
	c.reconcile(options, snapshot.Services...)
	seen, g := c.observed(), catalog.NewGate(30, 100_000)
	offer := func() (owned []string, same bool) {
		next := snapshot
		next.Services = slices.Clone(next.Services)
		same = catalog.Clean(next, limits).Equal(snapshot)
		owned = Owned(seen, "yaml", options)
		g.Offer(snapshot, owned)
		return owned, same
	}
	b.Run("same", func(b *testing.B) {
		for b.Loop() {
			if _, same := offer(); !same {
				b.Fatal("the snapshots differ")
			}
		}
	})
	b.Run("compared", func(b *testing.B) {
		for b.Loop() {
			owned, _ := offer()
			sources := []catalog.Sourced{{Source: "yaml", Services: g.Wanted(owned)}}
			if changes := Diff(Render(sources, seen, options), seen, sources, options); len(changes.Work)+len(changes.Problems) > 0 {
				b.Fatalf("%+v", changes)
			}
		}
	})
}
