package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Holds is the state of an invariant.
type Holds string

// States of an invariant.
const (
	// Pending: the end of the run decides.
	Pending Holds = "pending"
	// Held: it held in every sample.
	Held Holds = "holds"
	// Violated: it did not hold in some sample.
	Violated Holds = "violated"
	// NotEvaluated: it cannot be evaluated in a running agent, or a change of the cluster made
	// the result ambiguous.
	NotEvaluated Holds = "not-evaluated"
)

// Invariant is a property that must hold during and after any fault.
type Invariant struct {
	// Name is "ready" or I1 to I14.
	Name string `json:"name" column:"NAME"`
	// State is the result so far; Detail the reason if it is violated or not evaluated.
	State Holds `json:"state" column:"STATE"`
	// The property in one sentence.
	What   string `json:"what" column:"WHAT"`
	Detail string `json:"detail,omitempty" column:"DETAIL"`
}

// sample is the state of the agent at one instant of a run.
type sample struct {
	at         time.Time
	ready      bool
	reasons    string
	services   []Service // nil = they could not be read
	actors     []runtime.ActorState
	read       bool // VPP was read back
	operations []string
	agreed     bool // readiness and cluster did not change during that read
	usage      link.Usage
	changes    uint64
	goroutines int
}

// judge decides from samples which invariants hold. It is pure: no clock, no queries, so that tests
// feed it with samples.
type judge struct {
	first, last *sample
	generations map[string]uint64
	// when an actor began to wait for the decision of its supervisor
	suspended map[string]time.Time
	results   []Invariant // so far
	services  int         // faults of service actors
}

// Bounds of normal operation.
const (
	mostUndecided  = 5 * time.Second // a supervisor decides at once; a slow machine takes longer
	pendingPerKey  = 2
	pendingBesides = 1000
	mostGoroutines = 32 // more than at the beginning
)

// invariants returns all invariants in their order, with the reason why some are never evaluated in
// a running agent.
func invariants() []Invariant {
	const simulated = "needs the order of all messages: troupe chaos simulate evaluates it"
	return []Invariant{
		{Name: "ready", What: "a ready node has a VPP in the desired state, and the node is ready in the end", State: Pending},
		{Name: "I1", What: "VPP, read back, holds exactly the rows of the services", State: Pending},
		{Name: "I2", What: "no update is lost: every service is in sync", State: Pending},
		{Name: "I3", What: "no row twice: VPP refuses nothing", State: Pending},
		{Name: "I4", What: "a failing service actor costs VPP nothing", State: NotEvaluated, Detail: "no fault hit a service actor alone"},
		{Name: "I5", What: "VPP does not change while the cluster does not change", State: Pending},
		{Name: "I6", What: "no row is removed before the epoch barrier", State: NotEvaluated, Detail: simulated},
		{Name: "I7", What: "generations never go backwards", State: Pending},
		{Name: "I8", What: "no actor is left over, missing, suspended or in quarantine", State: Pending},
		{Name: "I9", What: "no goroutine is left over", State: Pending},
		{Name: "I10", What: "mailboxes stay bounded by the number of services", State: Pending},
		{Name: "I11", What: "a supervisor decides every failure, the root never restarts", State: Pending},
		{Name: "I12", What: "no packet is lost", State: NotEvaluated, Detail: "needs traffic: measure your own during the drill"},
		{Name: "I13", What: "later siblings are younger after a restart", State: NotEvaluated, Detail: simulated},
		{Name: "I14", What: "the same seed is the same run", State: NotEvaluated, Detail: "holds in the simulation only"},
	}
}

func newJudge(first *sample) *judge {
	j := &judge{first: first, generations: map[string]uint64{}, suspended: map[string]time.Time{}, results: invariants()}
	j.take(first)
	return j
}

// say records the result of an invariant; the first violation stays.
func (j *judge) say(name string, state Holds, format string, args ...any) {
	if result := j.result(name); result.State != Violated {
		result.State, result.Detail = state, fmt.Sprintf(format, args...)
	}
}

func (j *judge) result(name string) *Invariant {
	return &j.results[slices.IndexFunc(j.results, func(i Invariant) bool { return i.Name == name })]
}

// verdicts returns all invariants with their results so far.
func (j *judge) verdicts() []Invariant { return slices.Clone(j.results) }

// violated returns the first violation, nil if there is none.
func (j *judge) violated() *Invariant {
	if i := slices.IndexFunc(j.results, func(i Invariant) bool { return i.State == Violated }); i >= 0 {
		return &j.results[i]
	}
	return nil
}

// take evaluates the invariants that must hold at any time.
func (j *judge) take(s *sample) {
	// a change of the cluster takes time to reach VPP
	still := j.last != nil && j.last.changes == s.changes
	if s.read && s.agreed && still && s.ready && len(s.operations) > 0 {
		j.say("ready", Violated, "ready, but VPP differs from the desired state by %d operations, first: %s", len(s.operations), s.operations[0])
	}
	j.takeUsage(s)
	for i := range s.services {
		one := &s.services[i]
		if one.Generation < j.generations[one.Key] {
			j.say("I7", Violated, "%s went from generation %d to %d", one.Key, j.generations[one.Key], one.Generation)
		}
		j.generations[one.Key] = one.Generation
	}
	j.takeActors(s)
	j.last = s
}

// takeUsage evaluates the requests to VPP. After a change of the cluster, or a restart of VPP,
// writes and refusals may have a reason.
func (j *judge) takeUsage(s *sample) {
	const changed = "the cluster changed or VPP restarted during the run"
	switch refused := s.usage.Refused - j.first.usage.Refused; {
	case s.changes != j.first.changes && refused > 0:
		j.say("I3", NotEvaluated, changed)
	case refused > 0:
		j.say("I3", Violated, "VPP refused %d requests", refused)
	}
	switch writes := s.usage.Writes - j.first.usage.Writes; {
	case s.changes != j.first.changes:
		j.say("I5", NotEvaluated, changed)
	case writes > 0:
		j.say("I5", Violated, "%d changes of VPP without a change of the cluster", writes)
	}
}

// takeActors evaluates mailboxes and supervision.
func (j *judge) takeActors(s *sample) {
	most := pendingPerKey*len(s.actors) + pendingBesides
	waiting := map[string]time.Time{}
	for i := range s.actors {
		a := &s.actors[i]
		if a.User > most && a.Path != address.Journal {
			j.say("I10", Violated, "%d messages wait for %s, at most %d are normal", a.User, a.Path, most)
		}
		if a.State == runtime.StateSuspended {
			since, known := j.suspended[a.Path]
			if !known {
				since = s.at
			}
			waiting[a.Path] = since
			if s.at.Sub(since) > mostUndecided {
				j.say("I11", Violated, "%s has failed and its supervisor has not decided for %v", a.Path, s.at.Sub(since).Round(time.Second))
			}
		}
	}
	j.suspended = waiting
	if root := rootOf(s); root == nil || root.Incarnation != rootOf(j.first).Incarnation {
		j.say("I11", Violated, "the root was restarted or is gone")
	}
}

// rootOf returns the root actor of a sample, nil if it is gone.
func rootOf(s *sample) *runtime.ActorState {
	for i := range s.actors {
		if s.actors[i].Path == address.RootName {
			return &s.actors[i]
		}
	}
	return nil
}

// among counts a fault of a service actor that overlapped with others: it has cost nothing if the
// whole run has written nothing.
func (j *judge) among() { j.services++ }

// alone evaluates a fault that hit one service actor while no other fault was active: it must have
// cost nothing.
func (j *judge) alone(r *Record, changed bool) {
	switch {
	case changed:
		return
	case r.VPPWrites > 0:
		j.say("I4", Violated, "#%d %s of %s: %d writes", r.ID, r.What.Kind, r.Actor, r.VPPWrites)
	default:
		j.say("I4", Held, "")
	}
}

// well names a problem that keeps the agent from being at rest; "" = there is none.
func well(s *sample) string {
	switch problems := s.restless(); {
	case !s.ready:
		return "not ready: " + s.reasons
	case s.services == nil:
		return "services cannot be read"
	case len(problems) > 0:
		return problems[0]
	case !s.read:
		return "VPP could not be read back"
	case len(s.operations) > 0:
		return fmt.Sprintf("VPP differs by %d operations, first: %s", len(s.operations), s.operations[0])
	}
	for i := range s.services {
		if !s.services[i].good() {
			return s.services[i].Key + " is " + s.services[i].State
		}
	}
	return ""
}

// restless is Restless for a sample.
func (s *sample) restless() []string {
	if s.services == nil {
		return Restless(s.actors, nil)
	}
	keys := make([]string, len(s.services))
	for i := range s.services {
		keys[i] = s.services[i].Key
	}
	return Restless(s.actors, keys)
}

// Restless lists actors that do not work, are left over or missing (I8), for these keys of
// services; nil = the services are unknown.
func Restless(actors []runtime.ActorState, keys []string) (problems []string) {
	missing := map[string]bool{}
	for _, key := range keys {
		missing[address.Service(key)] = true
	}
	for i := range actors {
		a := &actors[i]
		if a.Suspended || a.Held || a.State == runtime.StateStarting || a.State == runtime.StateBackoff || a.State == runtime.StateQuarantined {
			problems = append(problems, fmt.Sprintf("%s is %s", a.Path, a.State))
		}
		if address.Supervisor(a.Path) == address.Services {
			if keys != nil && !missing[a.Path] {
				problems = append(problems, a.Path+" is left over")
			}
			delete(missing, a.Path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(missing)) {
		problems = append(problems, path+" is missing")
	}
	return problems
}

// final evaluates the invariants that must hold in the end, and decides all that are pending.
func (j *judge) final(s *sample) {
	j.take(s)
	check := func(name string, ok bool, format string, args ...any) {
		if !ok {
			j.say(name, Violated, format, args...)
		}
	}
	check("ready", s.ready, "not ready: %s", s.reasons)
	check("I1", s.read, "VPP could not be read back")
	if s.read && len(s.operations) > 0 {
		j.say("I1", Violated, "VPP differs by %d operations, first: %s", len(s.operations), s.operations[0])
	}
	check("I2", s.services != nil, "services cannot be read")
	for i := range s.services {
		one := &s.services[i]
		check("I2", one.good(), "%s is %s: %s", one.Key, one.State, one.Error)
	}
	if problems := s.restless(); len(problems) > 0 {
		j.say("I8", Violated, "%s", strings.Join(problems[:min(len(problems), 3)], "; "))
	}
	check("I9", s.goroutines <= j.first.goroutines+mostGoroutines, "%d goroutines, %d at the beginning", s.goroutines, j.first.goroutines)
	if j.result("I4").State == NotEvaluated && j.services > 0 && s.changes == j.first.changes && s.usage.Writes == j.first.usage.Writes {
		j.say("I4", Held, "")
	}
	for i := range j.results {
		if j.results[i].State == Pending {
			j.results[i].State = Held
		}
	}
}
