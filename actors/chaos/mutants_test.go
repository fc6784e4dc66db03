package chaos

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mutant is a planted bug: a small change of the production code, applied by the overlay of the
// compiler.
type mutant struct {
	name     string
	file     string // below the root of the module
	old, new string
}

// mutants are bugs that the simulation must find.
var mutants = []mutant{
	{
		"a crashed service does not ask for its spec", "actors/desired/service.go",
		"	c.Send(c.PID(address.Registry), &messages.PullSpec{Key: s.key, Incarnation: c.Incarnation()})\n",
		"",
	},
	{
		"a new spec does not end a quarantine", "actors/desired/specs.go",
		"		c.Send(c.PID(address.Services), &messages.Nudge{Key: in.GetKey(), Generation: r.generation})\n",
		"",
	},
	{
		"a restarted supervisor of services does not get the list", "actors/desired/registry.go",
		"	case \"services\": // it has no children\n		r.ensure(c)\n",
		"	case \"services\":\n",
	},
	{
		"a restarted renderer does not ask for the list", "actors/render/driver.go",
		"	c.Send(c.PID(address.Registry), &messages.RenderUp{Renderer: d.name})\n",
		"",
	},
	{
		"a service does not answer a restarted renderer", "actors/desired/service.go",
		"			s.render(c, m.GetRenderer())\n",
		"",
	},
	{
		"a service of which nothing is left does not say so", "actors/desired/service.go",
		"if s.view == nil { // nothing of the service is left in VPP",
		"if false {",
	},
	{
		"a list that is as new as the last change looks old", "actors/desired/registry.go",
		"if m.GetGeneration() < r.newest {",
		"if m.GetGeneration() <= r.newest {",
	},
	{
		"an older change replaces a newer one", "actors/desired/registry.go",
		"if !r.known() || in.GetGeneration() <= r.newest {",
		"if !r.known() {",
	},
	{
		"a service missing from a list is kept", "actors/desired/registry.go",
		"	for _, key := range r.keys() { // in their order, so that a simulation can be repeated\n		if !shown[key] {",
		"	for _, key := range r.keys()[:0] {\n		if !shown[key] {",
	},
	{
		"a restarted registry counts from 1 again", "actors/desired/registry.go",
		"r.generation = (c.Incarnation()-1)<<generationBits + 1",
		"r.generation = 1",
	},
	{
		"a service that is wanted again is released", "actors/desired/specs.go",
		"if e != nil && (e.spec.GetInput().GetService() != nil || m.GetGeneration() < e.spec.GetGeneration()) {",
		"if e != nil && m.GetGeneration() > e.spec.GetGeneration() {",
	},
	{
		"an older Render replaces a newer one", "actors/render/services.go",
		"if s != nil && m.GetGeneration() < s.generation || m.GetGeneration() < d.barrier.awaited[key] || s == nil && d.barrier.departed(m) {",
		"if m.GetGeneration() < d.barrier.awaited[key] || s == nil && d.barrier.departed(m) {",
	},
	{
		"rows are deleted before every service has rendered", "actors/render/barrier.go",
		"case b.begun == nil || len(b.awaited) > 0:",
		"case b.begun == nil:",
	},
	{
		"a restarted VPP is believed to hold the old tables", "actors/render/driver.go",
		"	if lost || restarted {\n",
		"	if (lost || restarted) && d.barrier.begun == nil {\n",
	},
	{
		"rows of earlier runs stay", "actors/render/barrier.go",
		"slices.Concat(leftovers, d.queue.unfinished())",
		"slices.Concat(leftovers[:0], d.queue.unfinished())",
	},
	{
		"rows of others are not seen", "actors/render/nat44/adapter.go",
		"if what, foreign := a.have.Foreign[k.Key]; foreign {",
		"if what, foreign := a.have.Foreign[k.Key]; foreign && k.part != row {",
	},
	{
		"a refused object is not retried", "actors/render/queue.go",
		"		if m.state != listed {\n",
		"		if m.state != listed || q.failed[k] != nil {\n",
	},
	{
		"a refused object waits for its back-off although VPP accepts it again", "actors/render/driver.go",
		"	d.queue.retry(c.Now())\n	d.queue.probe()\n",
		"	d.queue.retry(c.Now())\n",
	},
	{
		"a change is not put into the work queue", "actors/render/services.go",
		"	d.touched(key)\n",
		"	d.wishes.News()\n",
	},
	{
		"a refused object counts as done", "actors/render/nat44/work.go",
		"			if r.Err == nil && !r.Unknown {\n				done =",
		"			if r.Err == nil && !r.Unknown || op.OnRow() {\n				done =",
	},
	{
		"access lists are not planned", "actors/render/nat44/adapter.go",
		"	a.ranges.plan(service, view)\n",
		"	a.ranges.plan(service, nil)\n",
	},
	{
		"rows do not wait for their access lists", "actors/render/nat44/actual.go",
		"case a.listsPending() && !a.resting(missingLists), a.ranges.standing.Missing[k.Key] && want != nil:",
		"case false:",
	},
	{
		"addresses without endpoints are not refused", "actors/render/routes/adapter.go",
		"range plan.Claims {",
		"range plan.Claims[:0] {",
	},
	{
		"a route that was removed is believed to be there", "vpp/routes/state.go",
		"		delete(s.Routes, Place{op.Prefix, op.Source})\n",
		"",
	},
	{
		"a row is replaced for every change", "vpp/nat44/diffrow.go",
		"if ops, ok := changeLocals(have, target); ok {",
		"if ops, ok := changeLocals(have, target); ok && ops == nil {",
	},
	{
		"an entry is added before the one in its place is deleted", "vpp/nat44/arrange.go",
		"		c.edits = []edit{{pad(&from), false}, {pad(&to), true}}\n",
		"		c.edits = []edit{{pad(&to), true}, {pad(&from), false}}\n",
	},
	{
		"a draining backend keeps its pad", "vpp/nat44/arrange.go",
		"	if from.holds(&to) {\n		c.edits = []edit{{pad(&from), false}, {pad(&to), true}}\n",
		"	if from.holds(&to) {\n		c.edits = nil\n",
	},
	{
		"a row shrinks while others drain", "vpp/nat44/keep.go",
		"	r.Draining = r.Draining[:min(len(r.Draining), MaxDraining)]\n",
		"	r.Draining = r.Draining[:min(len(r.Draining), slotsFor(len(r.Locals))-len(r.Locals))]\n",
	},
	{
		"sessions of ended connections stay", "vpp/sessions/sweep.go",
		"	r.delete(ctx, c, requests)\n",
		"",
	},
	{
		"an endpoint in the slices loses its entry when it is not used", "actors/render/nat44/wanted.go",
		"	r = a.fitting(r, held, len(kept)).AlsoDraining(kept)\n",
		"	r.Draining = nil\n",
	},
	{
		"the youngest service gets a contested address", "actors/render/claims.go",
		"cmp.Compare(c.Created, other.Created)",
		"cmp.Compare(other.Created, c.Created)",
	},
	{
		"the node is ready whatever the parts report", "actors/health/healer.go",
		"		all.Ready = all.Ready && part.OK\n",
		"",
	},
	{
		"a failed child is not started again", "actors/runtime/dynamic.go",
		"	p.retry.wait(c, delay, &retryChild{ch})\n",
		"",
	},
	{
		"children begin before their earlier siblings are ready", "actors/runtime/ordered.go",
		"		ready = ready && s.ready\n",
		"",
	},
	{
		"a quarantine never ends", "actors/runtime/dynamic.go",
		"		d.begin(c, m.child)\n",
		"		if p := m.child.past; p == nil || !p.quarantined {\n			d.begin(c, m.child)\n		}\n",
	},
	{
		"rows are deleted on a provisional list", "actors/render/barrier.go",
		"	case b.begun.GetProvisional():\n		return Rendered\n",
		"",
	},
	{
		"the roles of a replaced interface are believed to be there", "actors/render/nat44/adapter.go",
		"		a.have.Lose(index)\n",
		"		_ = index\n",
	},
	{
		"SNAT does not come back in a restarted VPP", "vpp/nat44/diff.go",
		"case wanted && !have.Output[index]:",
		"case wanted && !have.Output[index] && have.Roles[index] != 0:",
	},
	{
		"external configuration takes an address from a service", "actors/render/nat44/external.go",
		"				r.Rank = rule.OfExternalConfiguration\n",
		"				r.Rank = rule.OfClusterIP\n",
	},
	{
		"a command is answered twice", "actors/command/command.go",
		"		cmd.to = nil\n",
		"",
	},
	{
		"translations of earlier runs stay", "actors/render/cnat/adapter.go",
		"		if held.Ours && !yield(k) {\n",
		"			if false && held.Ours && !yield(k) {\n",
	},
	{
		"the nodes of a replaced interface are believed to be there", "actors/render/cnat/adapter.go",
		"				delete(a.have.Attached, index) // the next interface with its index has no nodes\n",
		"				_ = index\n",
	},
	{
		"a translation that VPP refused counts as done", "actors/render/cnat/work.go",
		"		if r.Err == nil {\n",
		"		if r.Err == nil || op.OnRow() {\n",
	},
	{
		"a node gives up its addresses when a renderer restarts", "actors/health/healer.go",
		"const moment, while = 5 * time.Second, 30 * time.Second",
		"const moment, while = time.Duration(0), 30 * time.Second",
	},
	{
		"a restarted renderer of virtual routers does not ask whether the node is well", "actors/render/addresses/election.go",
		"{ return []string{address.Healer} }",
		"{ _ = address.Healer; return nil }",
	},
}

// hunts are tried one after the other, the shortest first.
var hunts = []string{
	"-test.run=^(TestSingleFaults|TestKillEachActor|TestNewSpecEndsQuarantine)$ -first-failure -singles=2",
	"-test.run=^TestSeeds$ -first-failure -seeds=150",
	"-test.run=^(TestSingleFaults|TestKillAtEachMessage)$ -first-failure -singles=20",
}

// shows names a single fault that finds the bug when the first hunts do not. It is played before
// them.
var shows = map[string]string{
	"a service that is wanted again is released":                            "made anew",
	"a refused object waits for its back-off although VPP accepts it again": "VPP refuses",
	"a translation that VPP refused counts as done":                         "VPP refuses",
}

// TestMutants plants each bug, builds the simulation with it and expects a seed to fail. A build
// takes 10 s, so the test plants none unless TROUPE_MUTANTS=N asks for every Nth.
func TestMutants(t *testing.T) {
	text := os.Getenv("TROUPE_MUTANTS")
	if text == "" {
		t.Skip("takes minutes; TROUPE_MUTANTS=1 plants all bugs, 5 every fifth as CI does")
	}
	every, err := strconv.Atoi(text)
	if err != nil || every < 1 {
		t.Fatalf("TROUPE_MUTANTS=%s is not a number from 1 on", text)
	}
	t.Logf("1 of %d is planted, of %d; TROUPE_MUTANTS=1 plants all", every, len(mutants))
	for i, m := range mutants {
		if i%every > 0 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // one bug is built while another one is hunted
			m.mustBeCaught(t)
		})
	}
}

// TestMutantsHaveTheirPlaces: a change of the code around a bug fails at once, not only where all
// bugs are planted.
func TestMutantsHaveTheirPlaces(t *testing.T) {
	for _, m := range mutants {
		m.planted(t)
	}
}

// root is the directory of the module.
const root = "../.."

// failedSeed matches the report of a failed seed by the tests.
var failedSeed = regexp.MustCompile(`seed \d+: .*`)

// mustBeCaught builds the tests of this package with the bug and expects one of the hunts to fail.
// A hunt is a list of arguments of the test binary.
func (m mutant) mustBeCaught(t *testing.T) {
	const pkg = "actors/chaos"
	dir := t.TempDir()
	bin := filepath.Join(dir, "simulation.test")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-overlay", m.overlay(t, dir), "-o", bin, "./"+pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the bug does not compile: %v\n%s", err, out)
	}
	for i, hunt := range append([]string{"-test.run=^TestSingleFaults$ -first-failure -singles=20"}, hunts...) {
		args := strings.Fields(hunt)
		if fault := shows[m.name]; i == 0 && fault != "" {
			args = append(args, "-only="+fault)
		} else if i == 0 {
			continue
		}
		test := exec.CommandContext(ctx, bin, args...)
		test.Dir = filepath.Join(root, pkg)
		out, err := test.CombinedOutput()
		if found := failedSeed.Find(out); err != nil && found != nil {
			t.Logf("hunt %d: %s", i, found)
			return
		} else if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Fatal("not found")
}

// planted returns the path and the text of the file with the bug.
func (m mutant) planted(t *testing.T) (path, text string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(good), m.old); n != 1 {
		t.Errorf("%s: %s has %d places to plant the bug, want 1: %s", m.name, m.file, n, m.old)
	}
	return path, strings.Replace(string(good), m.old, m.new, 1)
}

// overlay writes the file with the bug, and the overlay file for the compiler.
func (m mutant) overlay(t *testing.T, dir string) string {
	t.Helper()
	path, text := m.planted(t)
	bad := filepath.Join(dir, "bad.go")
	if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: bad}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
