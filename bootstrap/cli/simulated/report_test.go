package simulated

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// good is the report of a demo whose checks passed.
func good() *Report {
	return &Report{
		Services: 2, InSync: 2, Rows: 1, InSyncAfter: "1ms",
		Table: []ServiceRow{
			{Service: "shop/mail", Frontends: []string{}, Served: api.ServedNone, State: api.ServiceNotServed},
			{Service: "shop/web", Frontends: []string{"10.96.0.1:80/TCP"}, Rows: 1, Backends: 2, Served: api.ServedAll, State: api.ServiceInSync},
		},
		Probes: []Probe{{
			From: "pod", Client: "10.1.1.7", To: "10.96.0.1:80/TCP", Service: "shop/web", Want: forward, Got: forward,
			Shares: map[string]int{"10.1.1.2:80": 20, "10.1.1.1:80": 10}, OK: true, SourceTranslated: true,
		}},
		Drills: []Drill{{Fault: "renderer killed", VPPReads: 1, Recovered: "2ms", OK: true}},
	}
}

func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(r *Report)
		want   []string
	}{
		"good":             {func(*Report) {}, nil},
		"a service failed": {func(r *Report) { r.InSync = 1 }, []string{"1 of 2 services are in sync"}},
		"a row too many":   {func(r *Report) { r.Rows = 2 }, []string{"VPP has 2 rows, the agent reports 1"}},
		"a row too few":    {func(r *Report) { r.Rows = 0 }, []string{"VPP has 0 rows, the agent reports 1"}},
		"a probe": {func(r *Report) { r.Probes[0].OK, r.Probes[0].Got, r.Probes[0].Why = false, drop, "lost" }, []string{
			"probe from pod 10.1.1.7 to 10.96.0.1:80/TCP: want forward, got drop: lost",
		}},
		"a drill": {func(r *Report) { r.Drills[0].OK, r.Drills[0].VPPWrites = false, 3 }, []string{`drill "renderer killed": 3 writes, 1 reads`}},
	} {
		r := good()
		tt.change(r)
		r.judge()
		if diff := cmp.Diff(tt.want, r.Failures); diff != "" || r.OK != (len(tt.want) == 0) {
			t.Errorf("%s: OK %t (-want +got):\n%s", name, r.OK, diff)
		}
		again := len(r.Failures)
		if r.judge(); len(r.Failures) != again {
			t.Errorf("%s: judged twice it has %d failures, not %d", name, len(r.Failures), again)
		}
	}
}

func TestReportText(t *testing.T) {
	r := good()
	r.judge()
	var out bytes.Buffer
	table := cli.Format("table")
	wide := true
	print := func(c *cli.Columns) { r.table(c, wide) }
	if err := table.Print(&out, r, print); err != nil {
		t.Fatal(err)
	}
	const want = `SERVICE FRONTENDS ROWS BACKENDS SERVED STATE
shop/mail - 0 0 not-served not-served
shop/web 10.96.0.1:80/TCP 1 2 served in-sync

PROBE FROM TO SERVICE RESULT SHARES AS IT SHOULD BE
pod 10.1.1.7 10.96.0.1:80/TCP shop/web forward, source translated 10.1.1.1:80 x10 10.1.1.2:80 x20 yes

DRILL VPP WRITES ROWS READ IN SYNC AGAIN AFTER AS IT SHOULD BE
renderer killed 0 1 2ms yes

2 services, 2 in sync, 1 rows in VPP, in sync 1ms after the start: everything held.
1 probes arrived where Kubernetes wants them, 0 of them nearly.
1 actors were killed, and VPP was not written; renderers read its rows 1 times in all.`
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(out.String())) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	wide = false
	if err := table.Print(&out, r, print); err != nil || strings.Contains(out.String(), "PROBE FROM") || strings.Contains(out.String(), "DRILL") {
		t.Errorf("without deviations: %v\n%s", err, out.String())
	}
	r.Drills[0].OK, r.Probes[0].OK, r.Probes[0].Why = false, false, "lost"
	r.judge()
	out.Reset()
	if err := table.Print(&out, r, print); err != nil || strings.Count(out.String(), "NO") != 1 || !strings.Contains(out.String(), ": FAILED:\n  probe from pod") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestReportJSON: the names of the fields are part of the public interface.
func TestReportJSON(t *testing.T) {
	r := good()
	r.judge()
	var out bytes.Buffer
	format := cli.Format("json")
	if err := format.Print(&out, r, nil); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"services": 2.0, "inSync": 2.0, "rows": 1.0, "inSyncAfter": "1ms", "ok": true,
		"table": []any{
			map[string]any{"service": "shop/mail", "frontends": []any{}, "rows": 0.0, "backends": 0.0, "served": "not-served", "state": "not-served"},
			map[string]any{"service": "shop/web", "frontends": []any{"10.96.0.1:80/TCP"}, "rows": 1.0, "backends": 2.0, "served": "served", "state": "in-sync"},
		},
		"probes": []any{map[string]any{
			"from": "pod", "client": "10.1.1.7", "to": "10.96.0.1:80/TCP", "service": "shop/web", "want": "forward", "got": "forward",
			"shares": map[string]any{"10.1.1.1:80": 10.0, "10.1.1.2:80": 20.0}, "sourceTranslated": true, "ok": true,
		}},
		"drills": []any{map[string]any{"fault": "renderer killed", "vppWrites": 0.0, "vppReads": 1.0, "recovered": "2ms", "ok": true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
