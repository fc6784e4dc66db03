package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// stageFor starts an agent with chaos that is at rest.
func stageFor(t *testing.T, with ...func(*config.Agent)) *Agent {
	t.Helper()
	cfg := everything(t)
	cfg.API.EnableChaos = true
	for _, change := range with {
		change(cfg)
	}
	a := run(t, cfg)
	ready(t, a)
	settled(t, a)
	quiescent(t, a)
	return a
}

// outcome injects a fault and waits until it is known what came of it.
func outcome(t *testing.T, a *Agent, f live.Fault) live.Record {
	t.Helper()
	var r *live.Record
	eventually(t, "few enough failures in a short time", func() bool {
		var err error
		r, err = a.Backend().Inject(t.Context(), "a test", f)
		if err != nil && !errors.Is(err, api.ErrConflict) {
			t.Fatal(err)
		}
		return err == nil
	})
	return concluded(t, a, r.ID)
}

// concluded waits until it is known what came of a fault.
func concluded(t *testing.T, a *Agent, id uint64) (r live.Record) {
	t.Helper()
	eventually(t, "the fault is over", func() bool {
		status := must(a.Backend().Chaos(t.Context()))(t)
		r = *status.Find(id)
		return r.Over()
	})
	return r
}

// TestKillOfEachKind: the failure of an actor never changes VPP; only an actor that must know the
// contents of VPP reads it, once.
func TestKillOfEachKind(t *testing.T) {
	t.Parallel()
	a := stageFor(t)
	before, rows := a.Simulator().Counters().Mutating(), a.Simulator().Rows()
	reads := map[string]uint64{
		address.Renderer("nat44"): 1, address.Renderer("cnat"): 1, address.Dataplane: 2,
		address.Link: 2, // another session: what VPP holds is not known any more
	}
	victims := []string{address.Service("shop/web")}
	for _, one := range must(a.Backend().Actors(t.Context()))(t) {
		if one.Kind != "service" && one.Path != address.RootName && one.Path != address.Journal {
			victims = append(victims, one.Path)
		}
	}
	for _, path := range victims {
		r := outcome(t, a, live.Fault{Kind: live.Kill, Actor: path})
		if r.State != live.StateWell || r.VPPWrites != 0 || r.VPPReads > reads[path] {
			t.Errorf("%s: %s, %d writes, %d row reads, want at most %d: %s", path, r.State, r.VPPWrites, r.VPPReads, reads[path], r.Outcome)
		}
		t.Logf("%-40s %s", path, r.Outcome)
	}
	if after := a.Simulator().Counters().Mutating(); after != before {
		t.Errorf("VPP counted %d writes", after-before)
	}
	if !slices.Equal(rows, a.Simulator().Rows()) {
		t.Error("the rows are others")
	}
}

// TestCrashLoopOfAService: the API shows quarantine, no other actor is affected, and quarantine
// ends with the fault.
func TestCrashLoopOfAService(t *testing.T) {
	a := stageFor(t)
	states := func() map[string]api.ServiceState {
		out := map[string]api.ServiceState{}
		for _, s := range must(a.Backend().Services(t.Context()))(t) {
			out[s.Key] = s.State
		}
		return out
	}
	before := states()
	r := must(a.Backend().Inject(t.Context(), "a test", live.Fault{Kind: live.CrashLoop, Actor: "shop/web", For: live.Duration(time.Hour)}))(t)
	eventually(t, "it is in quarantine", func() bool { return states()["shop/web"] == api.ServiceQuarantined })
	for key, state := range states() {
		if key != "shop/web" && state != before[key] {
			t.Errorf("%s was %s and is %s", key, before[key], state)
		}
	}
	if !a.Backend().Readiness().Ready {
		t.Error("not ready, although VPP holds everything")
	}
	if n := must(a.Backend().StopChaos(t.Context(), "a test"))(t); n != 1 {
		t.Errorf("%d stopped", n)
	}
	if got := concluded(t, a, r.ID); got.State != live.StateWell || got.VPPWrites+got.VPPReads != 0 || got.Recovered > live.Duration(5*time.Second) {
		t.Errorf("%+v", got)
	}
	if got := states(); got["shop/web"] != api.ServiceInSync {
		t.Errorf("shop/web is %s", got["shop/web"])
	}
}

// drilled waits until a drill is over, which may take the agent live.DefaultConverge to be well
// again after the last fault.
func drilled(t *testing.T, a *Agent) (got *live.RunStatus) {
	t.Helper()
	within(t, live.DefaultConverge+patience, "the drill is over", func() bool {
		got = must(a.Backend().Chaos(t.Context()))(t).Run
		return got.State.Over()
	})
	return got
}

// TestDrill: a plan against a running agent, judged; the audit record is in the journal. How many
// faults fit into its time depends on the machine. It runs alone: a drill compares the number of
// goroutines of the process.
func TestDrill(t *testing.T) {
	a := stageFor(t)
	must(a.Backend().StartDrill(t.Context(), "a test", live.Plan{
		Name: "t", For: live.Duration(5 * time.Second), Every: live.Duration(200 * time.Millisecond), BlastRadius: 4, Faults: []live.Step{
			{Fault: live.Fault{Kind: live.Kill}, Of: "service", Weight: 4},
			{Fault: live.Fault{Kind: live.Panic, Phase: live.PhaseAfter, For: live.Duration(time.Second)}, Of: "registry"},
			{Fault: live.Fault{Kind: live.Drop, Rate: 0.3, For: live.Duration(time.Second)}, Of: "service"},
			{Fault: live.Fault{Kind: live.Delay, By: live.Duration(100 * time.Millisecond), For: live.Duration(time.Second)}, Of: "renderer"},
			{Fault: live.Fault{Kind: live.Kill, Actor: "nat44"}},
		},
	}))(t)
	got := drilled(t, a)
	if got.State != live.RunPassed || got.Faults == 0 || got.VPPWrites != 0 {
		t.Errorf("%+v", got)
	}
	events := must(a.Backend().Events(t.Context(), api.EventQuery{Kind: "drill", Limit: 1000}))(t)
	if last := events.Items[0]; len(events.Items) < 2*got.Faults+2 || !strings.HasPrefix(last.Text, "run 1 passed after ") || last.Object != "chaos/run/1" {
		t.Errorf("%d events for %d faults, the last one %+v", len(events.Items), got.Faults, last)
	}
}

// TestDrillFindsDamage: a row that is removed from VPP while the agent is ready ends the drill as
// violated.
func TestDrillFindsDamage(t *testing.T) {
	t.Parallel()
	// or it were repaired at once
	a := stageFor(t, func(c *config.Agent) { c.Healing.DriftCheckLeast = c.Healing.DriftCheckInterval })
	must(a.Backend().StartDrill(t.Context(), "a test", live.Plan{
		For: live.Duration(time.Hour), Converge: live.Duration(time.Second), Faults: []live.Step{{Fault: live.Fault{Kind: live.Kill}, Of: "service"}},
	}))(t)
	if retval, err := a.Simulator().ForeignRemove(addrPort(t, "10.96.20.1:80"), 6); err != nil || retval != 0 {
		t.Fatalf("%d, %v", retval, err)
	}
	got := drilled(t, a)
	if got.State != live.RunViolated || !strings.HasPrefix(got.Reason, "ready: ready, but VPP differs from the desired state by 1 operations, first: ") {
		t.Errorf("%+v", got)
	}
}

// TestDrillWhileVPPRestarts: a new VPP is a reason to write, so nothing is held against the agent;
// in the end it holds everything. It runs alone, as TestDrill does.
func TestDrillWhileVPPRestarts(t *testing.T) {
	a := stageFor(t)
	rows := a.Simulator().Rows()
	must(a.Backend().StartDrill(t.Context(), "a test", live.Plan{
		For: live.Duration(4 * time.Second), Every: live.Duration(300 * time.Millisecond), BlastRadius: 3,
		Faults: []live.Step{{Fault: live.Fault{Kind: live.Kill}, Of: "service"}, {Fault: live.Fault{Kind: live.Kill, Actor: "nat44"}}},
	}))(t)
	a.Simulator().Crash()
	got := drilled(t, a)
	if got.State != live.RunPassed || got.VPPWrites == 0 || !slices.Equal(rows, a.Simulator().Rows()) {
		t.Errorf("%+v", got)
	}
	for _, i := range got.Invariants {
		if want := live.NotEvaluated; i.Name == "I5" && i.State != want {
			t.Errorf("%+v", i)
		}
	}
}

// TestChaosIsOff: without --enable-chaos there are no hooks, and the refusal says how to enable
// them.
func TestChaosIsOff(t *testing.T) {
	a := run(t, everything(t))
	ready(t, a)
	if a.stage != nil {
		t.Error("live chaos exists")
	}
	ctx, b := context.Background(), a.Backend()
	_, inject := b.Inject(ctx, "a test", live.Fault{Kind: live.Kill, Actor: "nat44"})
	_, drill := b.StartDrill(ctx, "a test", live.Plan{})
	_, stop := b.StopChaos(ctx, "a test")
	for name, err := range map[string]error{
		"inject": inject, "drill": drill, "stop": stop, "kill": b.Command(ctx, address.Healer, api.VerbKill),
		"suspend": b.Command(ctx, address.Healer, api.VerbSuspend), "resume": b.Command(ctx, address.Healer, api.VerbResume),
	} {
		if !errors.Is(err, api.ErrUnsupported) || !strings.Contains(err.Error(), "--enable-chaos") || !strings.Contains(err.Error(), "api.enableChaos") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if status := must(b.Chaos(ctx))(t); status.Enabled || !strings.Contains(status.Hint, "--enable-chaos") || status.Records == nil {
		t.Errorf("%+v", status)
	}
}

// TestRefusalsHaveAStatus: the API says what kind of refusal it is.
func TestRefusalsHaveAStatus(t *testing.T) {
	a := stageFor(t)
	for name, tt := range map[string]struct {
		fault live.Fault
		is    error
	}{
		"exempt":  {live.Fault{Kind: live.Kill, Actor: "agent"}, api.ErrForbidden},
		"unknown": {live.Fault{Kind: live.Kill, Actor: "unknown"}, api.ErrNotFound},
		"invalid": {live.Fault{Kind: live.Kill}, api.ErrInvalid},
	} {
		if _, err := a.Backend().Inject(t.Context(), "a test", tt.fault); !errors.Is(err, tt.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.Backend().Command(t.Context(), address.RootName, api.VerbKill); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("kill of the root: %v", err)
	}
	if _, err := a.Backend().StartDrill(t.Context(), "a test", live.Plan{}); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("an empty plan: %v", err)
	}
	if err := a.Backend().Command(t.Context(), address.Healer, api.VerbKill); err != nil {
		t.Errorf("kill by the verb: %v", err)
	}
	if status := must(a.Backend().Chaos(t.Context()))(t); len(status.Records) != 1 || status.Records[0].Actor != address.Healer {
		t.Errorf("%+v", status)
	}
}
