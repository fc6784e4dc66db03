package bootstrap

import (
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

// TestChaosCommands: exit codes, tables and errors of everything but `simulate`.
func TestChaosCommands(t *testing.T) {
	good := apitest.Start(t, apitest.New(2), nil)
	bad := apitest.Start(t, apitest.New(10), nil) // a service of it has failed
	dir := t.TempDir()
	plan := write(t, dir, "plan.yaml", "apiVersion: troupe.dev/v1alpha1\nkind: ChaosPlan\nname: friday\nfaults:\n- {fault: kill, of: service}\n")
	broken := write(t, dir, "broken.yaml", "apiVersion: troupe.dev/v1alpha1\nkind: ChaosPlan\nevry: 1s\nfaults: []\n")
	for args, tt := range map[string]struct {
		code      int
		out, errs string // parts
		bad       bool
	}{
		"kill agent/dataplane/nat44":                        {code: 0, out: "State:         well\n"},
		"kill agent/dataplane/nat44 -o json":                {code: 0, out: `"vppWrites": 0`},
		"kill agent/dataplane/nat44 -o yaml":                {code: 0, out: "state: well"},
		"suspend agent/world --for 5s":                      {code: 0, out: "Fault:         suspend, for 5s\n"},
		"panic agent/world --phase start":                   {code: 0, out: "panic start, for 30s"},
		"drop agent/world --message Render --rate 0.5":      {code: 0, out: "drop Render, rate 0.5, for 30s"},
		"delay agent/world --by 1s":                         {code: 0, out: "delay by 1s, for 30s"},
		"crashloop agent/world":                             {code: 0, out: "crashloop, for 30s"},
		"kill agent":                                        {code: 1, errs: "troupe: forbidden: the root actor is exempt\n"},
		"kill unknown":                                      {code: 1, errs: "troupe: actor unknown: not found\n"},
		"kill":                                              {code: 2, errs: "accepts 1 arg(s), received 0"},
		"kill a --for 3s":                                   {code: 2, errs: "unknown flag: --for"},
		"delay a":                                           {code: 2, errs: "troupe: --by: is required: how late the messages come, for example 500ms\n"},
		"delay a --by 2h":                                   {code: 2, errs: "troupe: --by: 2h0m0s is not above 0 and up to 1m0s\n"},
		"drop a --rate 1.5":                                 {code: 2, errs: "troupe: --rate: 1.5 is not above 0 and up to 1\n"},
		"drop a --rate 0":                                   {code: 2, errs: "troupe: --rate: must be above 0\n"},
		"suspend a --for 0s":                                {code: 2, errs: "troupe: --for: must be above 0\n"},
		"panic a --phase later":                             {code: 2, errs: `troupe: --phase: "later" is not one of before, after, start, stop` + "\n"},
		"panic a --phase stop --message X":                  {code: 2, errs: `troupe: --message: means nothing in the phase "stop": there is no message` + "\n"},
		"run --plan " + plan:                                {code: 0, out: "Run:                1 friday\nState:              passed\n"},
		"run --plan " + plan + " -o json --for 1m --seed 5": {code: 0, out: `"state": "passed"`},
		"run --plan " + plan + " ":                          {code: 1, errs: "troupe: run 1: I2: a service has failed\n", out: "State:              violated\n", bad: true},
		"run":                                               {code: 2, errs: "troupe: expected --plan FILE\n"},
		"run --plan " + broken:                              {code: 2, errs: `broken.yaml:3: evry: unknown field; did you mean "every"?` + "\n"},
		"run --plan " + dir + "/none":                       {code: 1, errs: "troupe: read plan: open "},
		"run --plan " + plan + " --for 0s":                  {code: 2, errs: "troupe: --for: must be above 0\n"},
		"run --plan " + plan + " --for 1000h":               {code: 2, errs: "troupe: --for: 1000h0m0s is not above 0 and up to 24h0m0s\n"},
		"status":                                            {code: 0, out: "OUTCOME\n"},
		"stop -o json":                                      {code: 0, out: `"stopped": `},
	} {
		agent := good
		if tt.bad {
			agent = bad
		}
		r := troupe("", append([]string{"chaos"}, append(strings.Fields(args), "--control-socket", agent.Socket)...)...)
		if r.code != tt.code || !strings.Contains(r.out, tt.out) || !strings.Contains(r.errs, tt.errs) {
			t.Errorf("troupe chaos %s: exit code %d\n%s%s\nwant %d, %q, %q", args, r.code, r.out, r.errs, tt.code, tt.out, tt.errs)
		}
	}
	if r := troupe("", "chaos", "status", "--address", good.Address); r.code != 0 {
		t.Errorf("status over TCP: %+v", r)
	}
	if r := troupe("apiVersion: troupe.dev/v1alpha1\nkind: ChaosPlan\n", "chaos", "run", "--plan", "-"); r.code != 2 || !strings.Contains(r.errs, "standard input: faults: is empty") {
		t.Errorf("a plan from standard input: %+v", r)
	}
}
