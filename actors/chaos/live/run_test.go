package live

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// drill starts a run.
func (th *theatre) drill(t *testing.T, plan Plan) RunStatus {
	t.Helper()
	r, err := th.Start(t.Context(), "a test", plan)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// killServices is a plan that kills services, one after the other.
func killServices() Plan {
	return Plan{Name: "p", For: Duration(time.Minute), Every: Duration(5 * time.Second), Faults: []Step{{Fault: Fault{Kind: Kill}, Of: "service"}}}
}

// TestRun: a run injects faults for its time, one at a time, and ends with a verdict.
func TestRun(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		plan := killServices()
		plan.Seed = 9
		plan.Faults = append(plan.Faults,
			Step{Fault: Fault{Kind: Suspend, Actor: "nat44", For: Duration(3 * time.Second)}, Weight: 2},
			Step{Fault: Fault{Kind: Drop, Actor: "registry", For: Duration(time.Second)}, At: Duration(20 * time.Second)},
		)
		first := th.drill(t, plan)
		if first.ID != 1 || first.Seed != 9 || first.State != RunActive || first.Until.Sub(first.Began) != time.Minute || len(first.Invariants) != 15 {
			t.Errorf("%+v", first)
		}
		if _, err := th.Start(t.Context(), "another", killServices()); !errors.Is(err, ErrBusy) {
			t.Errorf("a second one: %v", err)
		}
		most := 0
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			s := th.Status()
			suffering := 0
			for _, r := range s.Records {
				if !r.Over() && r.What.Kind != Drop {
					suffering++
				}
			}
			most = max(most, suffering)
		}
		time.Sleep(20 * time.Second)
		got := th.Status().Run
		if got.State != RunPassed || got.Faults < 6 || got.Faults > 18 || got.Skipped > 0 || most != 1 || got.Ended.IsZero() {
			t.Errorf("%d at a time; %+v", most, got)
		}
		kinds := map[Kind]int{}
		for _, r := range th.Status().Records {
			kinds[r.What.Kind]++
			if r.Run != 1 || r.Who != "run 1, a test" || r.State != StateWell {
				t.Errorf("%+v", r)
			}
		}
		if kinds[Drop] != 1 || kinds[Kill] == 0 || kinds[Suspend] == 0 {
			t.Errorf("kinds %v", kinds)
		}
		for _, i := range got.Invariants {
			if i.State == Pending || i.State == Violated || i.Name == "I4" && i.State != Held {
				t.Errorf("%+v", i)
			}
		}
	})
}

// TestRunEndsEarly: a violation or a client ends a run with all of its faults.
func TestRunEndsEarly(t *testing.T) {
	for name, tt := range map[string]struct {
		event func(th *theatre)
		keep  bool
		state RunState
		want  string
		long  bool
	}{
		"violated": {event: func(th *theatre) { th.change(func() { th.usage.Writes = 3 }) }, state: RunViolated, want: "I5: 3 changes of VPP"},
		"violated, and it goes on": {
			event: func(th *theatre) { th.change(func() { th.usage.Writes = 3 }) }, keep: true, state: RunViolated, want: "I5: 3 changes", long: true,
		},
		"stopped":       {event: func(th *theatre) { th.Stop("an operator") }, state: RunStopped, want: "stopped by an operator"},
		"never well":    {event: func(th *theatre) { th.change(func() { th.ready = false }) }, state: RunViolated, want: "ready: not ready: nat44: unwell", long: true},
		"VPP is left":   {event: func(th *theatre) { th.change(func() { th.lacks = []string{"add row"} }) }, state: RunViolated, want: "ready: ready, but VPP differs from the desired state by 1 operations", long: true},
		"no answer":     {event: func(th *theatre) { th.change(func() { th.blind = errBlind }) }, state: RunViolated, want: "I1: VPP could not be read back", long: true},
		"the cluster":   {event: func(th *theatre) { th.change(func() { th.changes, th.usage.Writes = 1, 3 }) }, state: RunPassed, long: true},
		"nothing at it": {event: func(*theatre) {}, state: RunPassed, long: true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, th *theatre) {
				plan := killServices()
				plan.KeepGoing = tt.keep
				plan.Faults = append(plan.Faults, Step{Fault: Fault{Kind: Suspend, Actor: "nat44", For: Duration(MostFor)}, At: Duration(time.Second)})
				plan.BlastRadius = 2
				first := th.drill(t, plan)
				time.Sleep(11 * time.Second)
				tt.event(th)
				time.Sleep(4 * time.Minute)
				got := th.Status().Run
				if got.State != tt.state || !strings.Contains(got.Reason, tt.want) {
					t.Errorf("%s %q, want %s %q", got.State, got.Reason, tt.state, tt.want)
				}
				if long := got.Ended.Sub(first.Began) >= time.Minute; long != tt.long {
					t.Errorf("it took %v", got.Ended.Sub(first.Began))
				}
				if s := th.Status(); s.Active > 0 || th.state(t, nat44).Held {
					t.Errorf("left behind: %+v", s)
				}
			})
		})
	}
}

// TestRunIsRefused: a run needs a valid plan and an agent that is well. A plan without targets
// runs.
func TestRunIsRefused(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		if _, err := th.Start(t.Context(), "a test", Plan{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("an empty plan: %v", err)
		}
		th.change(func() { th.services[0].State = "failed" })
		if _, err := th.Start(t.Context(), "a test", killServices()); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "not well before the drill: shop/a is failed") {
			t.Errorf("an agent that is not well: %v", err)
		}
		th.change(func() { th.services[0].State = "in-sync" })
		th.drill(t, Plan{For: Duration(5 * time.Second), Every: Duration(time.Second), Faults: []Step{{Fault: Fault{Kind: Kill}, Of: "unknown"}}})
		time.Sleep(10 * time.Second)
		if got := th.Status().Run; got.State != RunPassed || got.Faults != 0 || got.Skipped == 0 {
			t.Errorf("without targets: %+v", got)
		}
	})
}

func TestPlanCheck(t *testing.T) {
	kill := Step{Fault: Fault{Kind: Kill}, Of: "service"}
	for name, tt := range map[string]struct {
		plan Plan
		want string
	}{
		"good":             {Plan{Faults: []Step{kill, {Fault: Fault{Kind: Drop, Actor: "nat44", Rate: 0.5}, Weight: 3}}}, ""},
		"empty":            {Plan{}, "faults"},
		"too many":         {Plan{Faults: make([]Step, MostSteps+1)}, "faults"},
		"too long":         {Plan{For: Duration(MostRunFor) + 1, Converge: Duration(MostFor) + 1, Faults: []Step{kill}}, "for converge"},
		"too fast":         {Plan{Every: 1, Faults: []Step{kill}}, "every"},
		"too wide":         {Plan{BlastRadius: MostFaults + 1, Faults: []Step{kill}}, "blastRadius"},
		"negative":         {Plan{For: -1, Every: -1, BlastRadius: -1, Faults: []Step{{Fault: kill.Fault, Of: "service", Weight: -1, At: -1}}}, "for every blastRadius faults[0].weight faults[0].at"},
		"no target":        {Plan{Faults: []Step{kill, {Fault: Fault{Kind: Kill}}}}, "faults[1].actor"},
		"two targets":      {Plan{Faults: []Step{{Fault: Fault{Kind: Kill, Actor: "a"}, Of: "service"}}}, "faults[0].of"},
		"exempt":           {Plan{Faults: []Step{{Fault: Fault{Kind: Kill, Actor: "journal"}}}}, "faults[0].actor"},
		"exempt kind":      {Plan{Faults: []Step{{Fault: Fault{Kind: Kill}, Of: "root"}}}, "faults[0].of"},
		"weight at a time": {Plan{Faults: []Step{{Fault: Fault{Kind: Kill}, Of: "service", Weight: 1, At: 1}}}, "faults[0].weight"},
		"a bad fault":      {Plan{Faults: []Step{kill, {Fault: Fault{Kind: Drop, Rate: 2, By: 1}, Of: "service"}}}, "faults[1].by faults[1].rate"},
	} {
		var fields []string
		for _, e := range Fields(tt.plan.Check()) {
			fields = append(fields, e.Field)
		}
		got := strings.Join(fields, " ")
		if name == "too many" {
			got = fields[0]
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestChoose: weights are shares, steps with a time are not chosen, pauses are around the mean.
func TestChoose(t *testing.T) {
	p := Plan{Every: Duration(10 * time.Second), Faults: []Step{
		{Fault: Fault{Kind: Kill}, Weight: 3}, {Fault: Fault{Kind: Drop}}, {Fault: Fault{Kind: Suspend}, At: 1},
	}}
	r, counts := rand.New(rand.NewPCG(1, 2)), map[Kind]int{}
	for range 4000 {
		counts[p.choose(r).Fault.Kind]++
		if d := p.pause(r); d < 7*time.Second || d > 13*time.Second {
			t.Fatalf("pause %v", d)
		}
	}
	if counts[Suspend] != 0 || counts[Kill] < 2850 || counts[Kill] > 3150 {
		t.Errorf("%v", counts)
	}
	if only := (Plan{Faults: p.Faults[2:]}); only.choose(r) != nil {
		t.Error("a step with a time was chosen")
	}
}

// BenchmarkIdlePolicy measures the cost of a message without armed faults. Without --enable-chaos
// there is no hook at all.
func BenchmarkIdlePolicy(b *testing.B) {
	b.ReportAllocs()
	var p Policy
	for b.Loop() {
		p.Fault(nil, nil, 0)
		p.Network(nil, nil)
	}
}
