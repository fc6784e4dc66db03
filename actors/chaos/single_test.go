package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/cnat"
)

// TestSingleFaults measures the virtual time from the end of each single fault until all is well,
// and bounds it.
func TestSingleFaults(t *testing.T) {
	kinds := append([]string{""}, strikes()...) // first a run without a fault
	if *only != "" {
		kinds = []string{*only}
	}
	played := map[string][]*Result{}
	for seed := range uint64(*singles) {
		results, errs := make([]*Result, len(kinds)), make([]error, len(kinds))
		each(len(kinds), func(i int) { results[i], errs[i] = single(kinds[i], seed) })
		for i, kind := range kinds {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			played[kind] = append(played[kind], results[i])
			judge(t, kind, results[i])
		}
		if *firstFailure && t.Failed() {
			return
		}
	}
	for kind, f := range faultKinds() {
		seen := slices.ContainsFunc(played[kind], func(r *Result) bool { return r.Struck[f.effect] > 0 })
		if f.effect != "" && !seen && *singles == allSingles && *only == "" {
			t.Errorf("%q never had an effect: %s", kind, f.effect)
		}
	}
	var table []string
	for _, kind := range kinds {
		slices.SortFunc(played[kind], func(a, b *Result) int { return cmp.Compare(a.Converged, b.Converged) })
		middle, last := played[kind][len(played[kind])/2], played[kind][len(played[kind])-1]
		table = append(table, fmt.Sprintf("%-24q median %8v  slowest %8v (seed %d)", kind, middle.Converged.Round(time.Millisecond), last.Converged.Round(time.Millisecond), last.Seed))
	}
	t.Logf("until all is well after the end of the fault:\n%s", strings.Join(table, "\n"))
}

// fewer returns the number of seeds where there are many cases: a third of those of a single fault.
func fewer() uint64 { return uint64(max(*singles/3, 2)) }

// leaves are the paths of all actors and supervisors, without services.
func leaves() (paths []string) {
	deps := &actors.Deps{NodeName: thisNode, Readiness: &health.Readiness{}, CNAT: &cnat.Config{Node: thisNode}}
	for group, children := range groups(address.RootName, actors.Tree(deps)) {
		for _, child := range children {
			paths = append(paths, group+"/"+child)
		}
	}
	slices.Sort(paths)
	return paths
}

// TestKillEachActor: after the failure of any actor at rest all is well soon.
func TestKillEachActor(t *testing.T) {
	t.Parallel()
	for _, at := range leaves() {
		for seed := range fewer() {
			var err error
			r, broken := alone(func(w *world, _ *rand.Rand) {
				if !slices.Contains(w.order.groups[path.Dir(at)], path.Base(at)) {
					return // a renderer that not every world has
				}
				w.injector.count("kill an actor")
				err = w.sys.Kill(at)
			}, seed)
			if err = errors.Join(err, broken); err != nil {
				t.Fatal(at, err)
			}
			if !r.OK() || r.Converged > soon {
				t.Errorf("%s, seed %d: %v, %s", at, seed, r.Converged, strings.Join(r.Violations, "\n"))
			}
		}
	}
}

// TestNewSpecEndsQuarantine: a new spec ends the quarantine of a service.
func TestNewSpecEndsQuarantine(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		r, err := alone(func(w *world, _ *rand.Rand) {
			const n = steady
			w.injector.count("poisoned service")
			w.injector.poisoned = serviceKey(n)
			w.cluster.changed(n)
			w.cluster.putSlice(n, 1, []netip.Addr{podIP(2, podsPerNode+2)})
			w.observed.frontends = nil // because the steady service changes
			w.later(3*time.Second, func() {
				w.injector.poisoned = ""
				w.cluster.putSlice(n, 1, []netip.Addr{podIP(2, podsPerNode+3)})
			})
		}, 2*seed+1)
		if err != nil {
			t.Fatal(err)
		}
		if !r.OK() || r.Converged > soon {
			t.Errorf("seed %d: %v, want at most %v, %s", seed, r.Converged, soon, strings.Join(r.Violations, "\n"))
		}
	}
}

// TestKillAtEachMessage kills each actor before and after each message of a start, a change and a
// resync. Its next incarnation asks for all that was lost, so all is well soon.
func TestKillAtEachMessage(t *testing.T) {
	t.Parallel()
	type death struct {
		life, victim string
		when         runtime.Phase
		at           int
	}
	lives := map[string]func(*world, *rand.Rand){
		"start":  (*world).restart,
		"change": func(w *world, r *rand.Rand) { w.cluster.mutate(r, false); w.cluster.changed(steady) },
		"resync": func(w *world, r *rand.Rand) { w.source.twice = true; w.vpp.Cut = 1; w.reconnect(r) },
	}
	play := func(d death) (heard int) {
		r, err := alone(func(w *world, dice *rand.Rand) {
			w.observed.frontends = nil // because the steady service changes
			i := w.injector
			i.victim, i.when, i.at, i.heard = d.victim, d.when, d.at, 0
			w.later(6*time.Second, func() { heard = i.heard })
			lives[d.life](w, dice)
		}, 1)
		if err != nil {
			t.Error(d, err)
		} else if !r.OK() || r.Converged > soon {
			t.Errorf("%+v: %v, %s", d, r.Converged, strings.Join(r.Violations, "\n"))
		}
		return heard
	}
	var deaths []death
	for _, victim := range append(leaves(), address.Service(serviceKey(steady))) {
		for life := range lives {
			for _, when := range []runtime.Phase{runtime.Before, runtime.After} {
				all := play(death{life, victim, when, 0})
				for n := range min(all, *kills) {
					deaths = append(deaths, death{life, victim, when, 1 + n*all/min(all, *kills)})
				}
			}
		}
	}
	each(len(deaths), func(i int) { play(deaths[i]) })
	t.Logf("%d deaths", len(deaths))
}

// judge expects all to be well within the bound of the fault.
func judge(t *testing.T, kind string, r *Result) {
	t.Helper()
	if !r.OK() {
		t.Errorf("%q, seed %d: %s", kind, r.Seed, strings.Join(r.Violations, "\n"))
	}
	if most := r.Struck.within(); r.Converged > most {
		t.Errorf("%q, seed %d: %v until all was well, want at most %v; struck: %v", kind, r.Seed, r.Converged, most, r.Struck)
	}
}

// each calls do n times, several at a time.
func each(n int, do func(int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range goruntime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}
