package look

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

const planHead = "apiVersion: troupe.dev/v1alpha1\nkind: ChaosPlan\n"

func TestDecodePlan(t *testing.T) {
	got, err := decodePlan([]byte(planHead+`name: friday
seed: 7
for: 5m
every: 10s
converge: 1m
blastRadius: 2
keepGoing: true
faults:
- {fault: kill, of: service, weight: 3}
- {fault: delay, actor: nat44, message: Render, by: 500ms, rate: 0.25, for: 10s, at: 1m}
- {fault: panic, actor: default/web, phase: after, times: 2, rate: 1}
`), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &live.Plan{
		Name: "friday", Seed: 7, For: live.Duration(5 * time.Minute), Every: live.Duration(10 * time.Second), Converge: live.Duration(time.Minute),
		BlastRadius: 2, KeepGoing: true, Faults: []live.Step{
			{Fault: live.Fault{Kind: live.Kill}, Of: "service", Weight: 3},
			{Fault: live.Fault{
				Kind: live.Delay, Actor: "nat44", Message: "Render", By: live.Duration(500 * time.Millisecond), Rate: 0.25, For: live.Duration(10 * time.Second),
			}, At: live.Duration(time.Minute)},
			{Fault: live.Fault{Kind: live.Panic, Actor: "default/web", Phase: "after", Times: 2, Rate: 1}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestErrors: each problem with its line and its field.
func TestPlanErrors(t *testing.T) {
	const faults = "faults:\n- {fault: kill, of: service}\n"
	for name, tt := range map[string]struct{ text, want string }{
		"empty":                    {"", "f.yaml: is empty: expected apiVersion troupe.dev/v1alpha1, kind ChaosPlan"},
		"no YAML":                  {"a: b: c", "f.yaml: is not YAML: mapping values are not allowed in this context"},
		"a list":                   {"[1]", "f.yaml:1: expected an object, found a list"},
		"no head":                  {faults, "f.yaml: apiVersion: is missing: expected troupe.dev/v1alpha1\nf.yaml: kind: is missing: expected ChaosPlan"},
		"another kind":             {"apiVersion: troupe.dev/v1alpha1\nkind: Pod\n" + faults, `f.yaml:2: kind: expected ChaosPlan, found "Pod" (str)`},
		"no faults":                {planHead, "f.yaml: faults: is empty: expected at least one fault"},
		"second document":          {planHead + faults + "---\n{}\n", "f.yaml:5: has a second document: only one is expected"},
		"unknown field":            {planHead + "evry: 1s\n" + faults, `f.yaml:3: evry: unknown field; did you mean "every"?`},
		"unknown in a step":        {planHead + "faults:\n- fault: kill\n  off: service\n", `f.yaml:5: faults[0].off: unknown field; did you mean "of"?`},
		"twice":                    {planHead + "for: 1s\nfor: 2s\n" + faults, "f.yaml:4: for: is duplicate"},
		"no unit":                  {planHead + "for: 30\n" + faults, `f.yaml:3: for: expected a duration with its unit, for example 30s, found "30" (int)`},
		"no duration":              {planHead + "for: soon\n" + faults, `f.yaml:3: for: expected a duration with its unit, for example 30s, found "soon" (str)`},
		"zero":                     {planHead + "every: 0s\n" + faults, `f.yaml:3: every: expected a duration with its unit, for example 30s, found "0s" (str)`},
		"seed":                     {planHead + "seed: 0x20000000000000\n" + faults, `f.yaml:3: seed: expected a whole number above 0 and below 2^53, found "0x20000000000000" (int)`},
		"number":                   {planHead + "blastRadius: many\n" + faults, `f.yaml:3: blastRadius: expected a whole number above 0, found "many" (str)`},
		"flag":                     {planHead + "keepGoing: 1\n" + faults, `f.yaml:3: keepGoing: expected true or false, found "1" (int)`},
		"rate":                     {planHead + "faults:\n- {fault: drop, actor: a, rate: 1.5}\n", `f.yaml:4: faults[0].rate: expected a number above 0 and up to 1, found "1.5" (float)`},
		"alias":                    {planHead + "name: &n x\nfaults: *n\n", "f.yaml:4: faults: YAML aliases are not supported"},
		"null":                     {planHead + "name:\n" + faults, `f.yaml:3: name: expected a string, found "" (null)`},
		"a step that is no object": {planHead + "faults:\n- kill\n", `f.yaml:4: faults[0]: expected an object, found "kill" (str)`},
		"what the plan says": {
			planHead + "blastRadius: 99\nfaults:\n- fault: kill\n  of: service\n- fault: suspend\n  actor: journal\n  message: Render\n",
			"f.yaml:3: blastRadius: 99 is not from 1 to 16\n" +
				"f.yaml:8: faults[1].actor: the journal is exempt: it keeps the audit record\nf.yaml:9: faults[1].message: means nothing for suspend",
		},
		"a field that is missing": {planHead + "faults:\n- fault: delay\n  of: service\n", "f.yaml:4: faults[0].by: is required: how late the messages come, for example 500ms"},
		"unknown fault":           {planHead + "faults:\n- fault: dance\n  of: service\n", `f.yaml:4: faults[0].fault: "dance" is not one of kill, panic, suspend, drop, delay, crashloop`},
		"too large":               {strings.Repeat("#", 1<<20+1), "f.yaml: is larger than 1048576 bytes"},
	} {
		plan, err := decodePlan([]byte(tt.text), "f.yaml")
		if plan != nil || err == nil || err.Error() != tt.want || !errors.Is(err, config.ErrInvalid) {
			t.Errorf("%s: %v\ngot  %v\nwant %s", name, plan, err, tt.want)
		}
	}
}

// FuzzDecode: any input is an executable plan, or errors that name a place; the same each time.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(planHead + "faults:\n- {fault: kill, of: service}\n"))
	f.Add([]byte(`{"apiVersion": "troupe.dev/v1alpha1", "kind": "ChaosPlan", "faults": [{"fault": "suspend", "actor": "nat44", "for": "5s"}]}`))
	f.Add([]byte(planHead + "for: 1h\nevery: 1s\nseed: 4\nfaults: [{fault: drop, actor: a, rate: .5, at: 3s}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, err := decodePlan(data, "f.yaml")
		again, errAgain := decodePlan(data, "f.yaml")
		if err == nil {
			if err := plan.Check(); err != nil {
				t.Errorf("accepted, but: %v", err)
			}
			if diff := cmp.Diff(plan, again); diff != "" || errAgain != nil {
				t.Errorf("not the same again: %s, %v", diff, errAgain)
			}
			return
		}
		if errAgain == nil || err.Error() != errAgain.Error() {
			t.Errorf("errors differ: %v; %v", err, errAgain)
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(line, "f.yaml") {
				t.Errorf("no place: %q", line)
			}
		}
	})
}
