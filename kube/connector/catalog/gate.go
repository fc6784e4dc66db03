package catalog

import (
	"maps"
	"slices"
)

// confirmations is the number of repeated complete snapshots that release the services held back.
const confirmations = 2

// Gate decides which services of a source are wanted, and above all which services may be deleted.
// A catalog that answers wrongly, or not at all, must not empty the cluster:
//
//   - nothing is deleted before the first complete snapshot of this process;
//   - an incomplete snapshot adds and changes services and deletes nothing;
//   - if all services in the cluster vanish, or more than a percentage, nothing is deleted until
//     two more queries of the source give the same answer or an operator confirms;
//   - while a source fails, the last good state stays;
//   - a service without healthy instances has not vanished: it stays, with its instances;
//   - the number of services of a source is limited, held services included; above the limit, new
//     ones wait.
//
// A Gate is a pure state machine for one source, owned by one goroutine. Its owner calls Offer for
// each snapshot, changed or not, and Wanted before each comparison with the cluster. It calls both
// only after the objects of the cluster have been listed once.
type Gate struct {
	percent int // of the services in the cluster that may vanish at once
	most    int // services, in the cluster and wanted there

	complete bool // a complete snapshot was seen
	// The last good definition of each service that is not released.
	known map[string]Service
	// Vanished services to be deleted, until they are gone from the cluster or back at the
	// source.
	released map[string]bool
	held     map[string]bool // vanished and held back
	waiting  int             // new services of the last snapshot for which there is no place
	agreed   int             // repeated complete snapshots since
	base     int             // services in the cluster when they began to vanish
	spent    int             // number of these released without confirmation
}

// NewGate returns a gate. At most this percentage, 0 to 100, of a source's services may vanish
// without confirmation, and at most so many services are wanted.
func NewGate(percent, most int) *Gate {
	return &Gate{percent: percent, most: most, known: map[string]Service{}, released: map[string]bool{}}
}

// Offer takes a clean snapshot of the source. owned are the names, at the source, of its services
// in the cluster.
func (g *Gate) Offer(s Snapshot, owned []string) {
	there := map[string]bool{}
	for _, service := range s.Services {
		there[service.Name] = true
		delete(g.released, service.Name)
		if g.held[service.Name] {
			delete(g.held, service.Name)
			g.agreed = 0 // the catalog fills again
		}
	}
	left := map[string]bool{}
	for _, name := range owned {
		left[name] = g.released[name]
	}
	maps.DeleteFunc(g.released, func(name string, _ bool) bool { return !left[name] })
	if s.Complete {
		g.complete = true
		g.vanish(there, owned, s.Repeated)
	}
	g.adopt(s.Services, owned)
}

// adopt takes the definitions of a snapshot. A name that is new needs a place, or an answer with
// other names each time would fill the cluster with services that are held back.
func (g *Gate) adopt(services []Service, owned []string) {
	wanted := map[string]bool{}
	for name := range g.known {
		wanted[name] = true
	}
	for _, name := range owned {
		if !g.released[name] {
			wanted[name] = true
		}
	}
	g.waiting = 0
	for _, service := range services {
		switch {
		case service.Unknown:
		case !wanted[service.Name] && len(wanted) >= g.most:
			g.waiting++
		default:
			wanted[service.Name] = true
			g.known[service.Name] = service
		}
	}
}

// vanish decides about services that are missing from a complete snapshot.
func (g *Gate) vanish(there map[string]bool, owned []string, repeated bool) {
	missing := map[string]bool{}
	live := 0
	for _, name := range owned {
		if !g.released[name] {
			live++
			missing[name] = !there[name]
		}
	}
	maps.DeleteFunc(missing, func(_ string, is bool) bool { return !is })
	// A service that never reached the cluster can be forgotten at once.
	for name := range g.known {
		if !there[name] && !missing[name] {
			delete(g.known, name)
		}
	}
	if len(missing) == 0 {
		g.release(nil)
		return
	}
	// Services that vanish one after the other count together. Otherwise a slow loss of the
	// catalog would stay below the limit.
	if g.spent == 0 {
		g.base = live
	}
	if len(g.held) == 0 && len(there) > 0 && (g.spent+len(missing))*100 <= g.percent*g.base {
		spent := g.spent + len(missing)
		g.release(missing)
		g.spent = spent
		return
	}
	switch {
	case !maps.Equal(missing, g.held):
		g.held, g.agreed = missing, 0
	case repeated:
		g.agreed++
	}
	if g.agreed >= confirmations {
		g.release(missing)
	}
}

// release allows the deletion of services and starts the count again.
func (g *Gate) release(names map[string]bool) {
	for name := range names {
		g.released[name] = true
		delete(g.known, name)
	}
	g.held, g.agreed, g.spent = nil, 0, 0
}

// Confirm releases the services that are held back now, because an operator confirms it. It returns
// their names.
func (g *Gate) Confirm() []string {
	names := slices.Sorted(maps.Keys(g.held))
	g.release(g.held)
	return names
}

// Wanted returns the services that should be in the cluster, ordered by name, with the last good
// definition of each. A service in the cluster that may not be deleted, and has no definition in
// this process, is Unknown.
func (g *Gate) Wanted(owned []string) []Service {
	out := maps.Clone(g.known)
	for _, name := range owned {
		if _, known := out[name]; !known && !g.released[name] {
			out[name] = Service{Name: name, Unknown: true}
		}
	}
	services := make([]Service, 0, len(out))
	for _, name := range slices.Sorted(maps.Keys(out)) {
		services = append(services, out[name])
	}
	return services
}

// GateStatus is the state of a gate for an operator.
type GateStatus struct {
	// Complete says that a complete snapshot was seen. Before that, nothing is deleted.
	Complete bool
	// Held are the vanished services that are held back, ordered.
	Held []string
	// Missing is the number of repeated complete snapshots that would release them.
	Missing int
	// Waiting is how many services of the last snapshot are left out, because the source has as
	// many as it may have.
	Waiting int
}

// Status returns the state of the gate.
func (g *Gate) Status() GateStatus {
	out := GateStatus{Complete: g.complete, Held: slices.Sorted(maps.Keys(g.held)), Waiting: g.waiting}
	if len(out.Held) > 0 {
		out.Missing = confirmations - g.agreed
	}
	return out
}
