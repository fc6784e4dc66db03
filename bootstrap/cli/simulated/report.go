package simulated

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// Report is the outcome of a demo, and the output of -o json.
type Report struct {
	// Services is the number of services of the cluster, InSync the number of services in sync.
	Services int `json:"services"`
	InSync   int `json:"inSync"`
	// Rows is the number of rows in VPP, including rows of other owners.
	Rows int `json:"rows"`
	// InSyncAfter is the time from the start of the process until all services were in sync.
	InSyncAfter string `json:"inSyncAfter"`
	// Table has the state of each service, ordered by name.
	Table []ServiceRow `json:"table"`
	// Probes are the packets that were sent.
	Probes []Probe `json:"probes"`
	// Drills are the faults that were injected.
	Drills []Drill `json:"drills"`
	// OK is true if all checks passed.
	OK bool `json:"ok"`
	// Failures are the failed checks, one line each.
	Failures []string `json:"failures,omitempty"`

	settled time.Time // when all services were in sync
}

// ServiceRow is one service.
type ServiceRow struct {
	// Service is "namespace/name".
	Service string `json:"service"`
	// Frontends are its addresses, "ip:port/PROTO"; Rows the number of its rows in VPP.
	Frontends []string `json:"frontends"`
	Rows      int      `json:"rows"`
	// Backends is the number of different backends.
	Backends int `json:"backends"`
	// Served and State are as in the API.
	Served api.Served       `json:"served"`
	State  api.ServiceState `json:"state"`
}

// Probe is a number of connections from one client to one frontend.
type Probe struct {
	// From is "pod", "node" or "outside"; Client is its address.
	From   string `json:"from"`
	Client string `json:"client"`
	// To is the frontend, "ip:port/PROTO", of Service.
	To      string `json:"to"`
	Service string `json:"service"`
	// Want and Got are "forward", "reject", "drop" or "none" (not service traffic for VPP).
	Want string `json:"want"`
	Got  string `json:"got"`
	// Shares counts the connections by the backend they arrived at.
	Shares map[string]int `json:"shares,omitempty"`
	// SourceTranslated is true if the endpoint saw another client address.
	SourceTranslated bool `json:"sourceTranslated"`
	// OK is true if every connection reached a destination that Kubernetes allows; Why is the
	// failure, or the approximation of VPP.
	OK  bool   `json:"ok"`
	Why string `json:"why,omitempty"`
}

// Drill is one injected fault.
type Drill struct {
	// Fault is a description of the fault.
	Fault string `json:"fault"`
	// VPPWrites and VPPReads count the messages that changed VPP and the reads of all rows
	// until the agent was quiet again, without drift checks.
	VPPWrites uint64 `json:"vppWrites"`
	VPPReads  uint64 `json:"vppReads"`
	// Recovered is the time until everything was in sync again.
	Recovered string `json:"recovered"`
	// OK is true if the fault cost no more than allowed.
	OK bool `json:"ok"`
}

// judge sets Failures and OK.
func (r *Report) judge() {
	r.Failures = nil
	if r.InSync != r.Services {
		r.Failures = append(r.Failures, fmt.Sprintf("%d of %d services are in sync", r.InSync, r.Services))
	}
	believed := 0
	for _, s := range r.Table {
		believed += s.Rows
	}
	if r.Rows != believed {
		r.Failures = append(r.Failures, fmt.Sprintf("VPP has %d rows, the agent reports %d", r.Rows, believed))
	}
	for _, p := range r.Probes {
		if !p.OK {
			r.Failures = append(r.Failures, fmt.Sprintf("probe from %s %s to %s: want %s, got %s: %s", p.From, p.Client, p.To, p.Want, p.Got, p.Why))
		}
	}
	for _, d := range r.Drills {
		if !d.OK {
			r.Failures = append(r.Failures, fmt.Sprintf("drill %q: %d writes, %d reads", d.Fault, d.VPPWrites, d.VPPReads))
		}
	}
	r.OK = len(r.Failures) == 0
}

// deviating are the probes that were not answered exactly as Kubernetes asks.
func (r *Report) deviating() []Probe {
	return slices.DeleteFunc(slices.Clone(r.Probes), func(p Probe) bool { return p.OK && p.Why == "" })
}

// table prints the report as text: the services, the probes that deviate, and the verdict. All
// probes and the drills, which were told as they happened, are in a wide report only.
func (r *Report) table(c *cli.Columns, wide bool) {
	c.Row("SERVICE", "FRONTENDS", "ROWS", "BACKENDS", "SERVED", "STATE")
	for _, s := range r.Table {
		c.Row(s.Service, short(s.Frontends), s.Rows, s.Backends, s.Served, s.State)
	}
	probes := r.deviating()
	if wide {
		probes = r.Probes
	}
	for i, p := range probes {
		if i == 0 {
			c.Paragraph("\n")
			c.Row("PROBE FROM", "TO", "SERVICE", "RESULT", "SHARES", "AS IT SHOULD BE")
		}
		c.Row(p.From+" "+p.Client, p.To, p.Service, p.Got+translated(p), shares(p.Shares), mark(p.OK, p.Why))
	}
	if wide {
		c.Paragraph("\n")
		c.Row("DRILL", "VPP WRITES", "ROWS READ", "IN SYNC AGAIN AFTER", "AS IT SHOULD BE")
		for _, d := range r.Drills {
			c.Row(d.Fault, d.VPPWrites, d.VPPReads, d.Recovered, mark(d.OK, ""))
		}
	}
	c.Paragraph("\n" + r.verdict() + "\n")
}

// verdict is the outcome in three sentences, or the failed checks.
func (r *Report) verdict() string {
	head := fmt.Sprintf("%d services, %d in sync, %d rows in VPP, in sync %s after the start: ", r.Services, r.InSync, r.Rows, r.InSyncAfter)
	if !r.OK {
		return head + "FAILED:\n  " + strings.Join(r.Failures, "\n  ")
	}
	var reads uint64
	for _, d := range r.Drills {
		reads += d.VPPReads
	}
	return head + fmt.Sprintf("everything held.\n"+
		"%d probes arrived where Kubernetes wants them, %d of them nearly.\n"+
		"%d actors were killed, and VPP was not written; renderers read its rows %d times in all.",
		len(r.Probes), len(r.deviating()), len(r.Drills), reads)
}

// mark is the last column of a table. A reported approximation is "nearly" as it should be.
func mark(ok bool, why string) string {
	switch {
	case ok && why == "":
		return "yes"
	case ok:
		return "nearly: " + why
	default:
		return strings.TrimSpace("NO " + why)
	}
}

// translated marks a probe whose endpoint saw another client address.
func translated(p Probe) string {
	if p.SourceTranslated {
		return ", source translated"
	}
	return ""
}

// short lists the first few items.
func short(list []string) string {
	const most = 3
	if len(list) > most {
		return fmt.Sprintf("%s +%d", strings.Join(list[:most], " "), len(list)-most)
	}
	return strings.Join(list, " ")
}

// shares prints counts by backend, ordered.
func shares(counts map[string]int) string {
	var parts []string
	for _, backend := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s x%d", backend, counts[backend]))
	}
	return strings.Join(parts, " ")
}
