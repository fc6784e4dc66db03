package chaos

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mutant is a bug that somebody might make: a small change of the production code, applied by the compiler's overlay.
type mutant struct {
	name     string
	file     string // below the root of the module
	old, new string
}

// mutants are bugs that the simulation must find.
var mutants = []mutant{
	{
		"a spec that got lost is not repeated", "actors/registry_specs.go",
		"	r.open[in.GetKey()] = e\n", "",
	},
	{
		"a gap of the watch is not noticed", "actors/registry.go",
		"r.doubt.persists(missed) {", "r.doubt.persists(0 * missed) {",
	},
	{
		"what is missing in a list is kept", "actors/registry.go",
		"range r.absent(at, shown) {", "range r.absent(at, shown)[:0] {",
	},
	{
		"the generations of a restarted source look old", "actors/census.go",
		"{ return run<<markBits | generation }", "{ return generation + 0*run }",
	},
	{
		"a restarted registry counts from 1 again", "actors/registry.go",
		"r.generation = (c.Incarnation()-1)<<generationBits + 1", "r.generation = 1",
	},
	{
		"an older word replaces a newer one", "actors/enrolment.go",
		"case a != nil && m.GetGeneration() < a.generation, a == nil && e.departed(m):", "case a == nil && e.departed(m):",
	},
	{
		"rows are deleted before every service has spoken", "actors/enrolment.go",
		"return e.begun != nil && !e.begun.GetProvisional() && len(e.awaited) == 0", "return e.begun != nil",
	},
	{
		"what VPP held before it was away is trusted", "actors/renderer.go",
		"		if gone {\n			r.have = nil\n", "		if gone {\n",
	},
	{
		"rows of earlier runs stay", "actors/renderer_epoch.go",
		"leftovers = append(leftovers, k)", "_ = k",
	},
	{
		"rows of others are not seen", "actors/renderer_read.go",
		"r.claims.SetForeign(m.state.Foreign)", "r.claims.SetForeign(nil)",
	},
	{
		"what VPP refused is not tried again", "actors/backlog.go",
		"		if b.dirty[k] {\n", "		if b.dirty[k] && b.failed[k] == nil {\n",
	},
	{
		"what VPP refused waits for its turn although VPP takes it again", "actors/renderer.go",
		"	r.retry(c.Now())\n	r.probe()\n", "	r.retry(c.Now())\n",
	},
	{
		"a row is made anew for every change", "vpp/nat44/diffrow.go",
		"if ops, ok := changeLocals(have, &kept); ok {", "if ops, ok := changeLocals(have, &kept); ok && ops == nil {",
	},
	{
		"the youngest service gets a contested address", "vpp/nat44/claims.go",
		"cmp.Compare(c.created, other.created)", "cmp.Compare(other.created, c.created)",
	},
	{
		"clients are let in whom a service keeps out", "actors/ledger.go",
		"l.guard.put(key, a.view)", "l.guard.put(key, nil)",
	},
	{
		"addresses without endpoints are not refused", "actors/routebook.go",
		"routes.Plan(view, b.config).Claims)", "routes.Plan(view, b.config).Claims[:0])",
	},
	{
		"ready whatever the parts say", "actors/healer.go",
		"		report.Ready = report.Ready && part.OK\n", "",
	},
	{
		"a failed child is not started again", "actors/runtime/dynamic.go",
		"	t.retry.wait(c, delay, &retryWard{w})\n", "",
	},
	{
		"a change is not put on the list", "actors/backlog.go",
		"	for _, k := range change() {\n		b.touch(k)\n", "	for _, k := range change() {\n",
	},
	{
		"what VPP refused counts as done", "actors/renderer_batch.go",
		"if o.take(row, res.Op, res.Err, res.Unknown) {", "if o.take(row, res.Op, res.Err, res.Unknown) || row != nil {",
	},
	{
		"a route that was removed is believed to be there", "vpp/routes/state.go",
		"		delete(s.Routes, Place{op.Prefix, op.Source})\n", "",
	},
	{
		"children begin before their elder siblings are ready", "actors/runtime/ordered.go",
		"		ready = ready && s.ready\n", "",
	},
	{
		"a quarantine never ends", "actors/runtime/dynamic.go",
		"		d.begin(c, m.ward)\n", "		if m.ward.trouble == nil || !m.ward.trouble.quarantined {\n			d.begin(c, m.ward)\n		}\n",
	},
	{
		"a service that is wanted again is let go", "actors/registry_specs.go",
		"if e != nil && (e.spec.GetInput().GetService() != nil || m.GetGeneration() < e.spec.GetGeneration()) {",
		"if e != nil && m.GetGeneration() > e.spec.GetGeneration() {",
	},
}

// twice is a bug of commands, which the simulation does not play; their own test must find it.
var twice = mutant{"a command is answered twice", "actors/command.go", "		cmd.to = nil\n", ""}

// TestMutants plants each bug, builds the simulation with it and wants a seed to fail. It builds the package anew for every bug, which takes
// minutes: TROUPE_MUTANTS=all does that, otherwise it is done for two only.
func TestMutants(t *testing.T) {
	if slow > 1 {
		t.Skip("the race detector makes no difference here; run it without")
	}
	some := mutants
	if os.Getenv("TROUPE_MUTANTS") != "all" {
		some = some[:1]
		t.Logf("2 of %d planted; TROUPE_MUTANTS=all plants them all", len(mutants)+1)
	}
	for _, m := range some {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // one is built while another one is looked for
			m.mustBeCaught(t, "actors/chaos", failedSeed, "-test.run=^(TestSingleFaults|TestLoseEachKind)$ -first-failure", "-test.run=^TestSeeds$ -first-failure -seeds=300")
		})
	}
	t.Run(twice.name, func(t *testing.T) {
		twice.mustBeCaught(t, "actors", failedTest, "-test.run=^TestCommandsAreAnsweredOnce$")
	})
}

// root is where the module is.
const root = "../.."

// failedTest is how any test says that it failed.
var failedTest = regexp.MustCompile(`--- FAIL: .*`)

// failedSeed is how TestSeeds says that a seed failed.
var failedSeed = regexp.MustCompile(`seed \d+: .*`)

// mustBeCaught builds the tests of a package with the bug, runs them and wants the sign of a failure
// from one of the hunts, which are arguments of the test binary.
func (m mutant) mustBeCaught(t *testing.T, pkg string, sign *regexp.Regexp, hunts ...string) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "simulation.test")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", m.overlay(t, dir), "-o", bin, "./"+pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the bug does not compile: %v\n%s", err, out)
	}
	for _, hunt := range hunts {
		test := exec.CommandContext(ctx, bin, strings.Fields(hunt)...)
		test.Dir = filepath.Join(root, pkg)
		out, err := test.CombinedOutput()
		if found := sign.Find(out); err != nil && found != nil {
			t.Logf("%s", found)
			return
		} else if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Fatal("not found")
}

// overlay writes the file with the bug, and what tells the compiler to take it.
func (m mutant) overlay(t *testing.T, dir string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		t.Fatalf("%s has %d places to plant the bug, want 1: %s", m.file, n, m.old)
	}
	bad := filepath.Join(dir, "bad.go")
	if err := os.WriteFile(bad, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600); err != nil {
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
