package api

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Readiness reports whether the node is ready, part by part.
type Readiness struct {
	// Ready is true when every part is OK.
	Ready bool `json:"ready"`
	// Since is when Ready last changed.
	Since time.Time `json:"since"`
	// Parts are ordered by name.
	Parts []Part `json:"parts"`
}

// Part is the state of one part of the agent.
type Part struct {
	Name string `json:"name" column:"PART"`
	OK   bool   `json:"ok" column:"OK" tone:"bad"`
	// Reason why the part is not OK, one line. If the part is OK, a warning or "".
	Reason string `json:"reason,omitempty" column:"REASON"`
	// Epoch of a renderer; 0 for others.
	Epoch uint64 `json:"epoch,omitempty"`
}

// NodeStatus is the state of a node in one line: GET /api/v1/status.
type NodeStatus struct {
	Node string `json:"node"`
	// Version of the agent: a tag, a pseudo-version, or "(devel)", with the start of the
	// revision.
	Version string `json:"version"`
	// Ready, Since and Reason are readiness, as /readyz has it.
	Ready  bool      `json:"ready"`
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Warnings are the warnings of parts that are OK, as /readyz?verbose has them.
	Warnings []string `json:"warnings,omitempty"`
	// VPP is its version; "" = it is not connected.
	VPP string `json:"vpp,omitempty"`
	// Started is when it was started, by the time of its socket; left out if that is not known.
	Started time.Time `json:"vppStarted,omitzero"`
	// Restart is the last restart of VPP that this agent has seen; left out if there was none.
	Restart *Restart `json:"restart,omitempty"`
	// Services counts services by state, without the states of no service.
	Services map[ServiceState]int `json:"services"`
	// Served counts services by what their users get.
	Served map[Served]int `json:"served"`
	// Draining counts endpoints that keep connections and get no new ones.
	Draining int `json:"draining"`
	// Addresses are the load-balancer addresses that this node owns.
	Addresses []string `json:"addresses,omitempty"`
	// Sessions is the number of NAT sessions of the busiest worker; 0 = none, or unknown.
	Sessions uint64 `json:"sessions"`
	// Changed is the time of the latest change of a service; left out if there was none.
	Changed time.Time `json:"changed,omitzero"`
}

// Restart is a restart of VPP.
type Restart struct {
	// Lost is when the connection to the VPP before ended, Back when the next one was connected.
	Lost time.Time `json:"lost"`
	Back time.Time `json:"back"`
	// Filled is when VPP was first in the desired state again; left out until then, and where that
	// is not known.
	Filled time.Time `json:"filled,omitzero"`
}

// String describes the restart in words, for example "VPP restarted 3 min ago: away for 1.2s,
// filled 40ms later".
func (r *Restart) String() string {
	text := fmt.Sprintf("VPP restarted %s ago: away for %v", Age(time.Since(r.Back)), r.Back.Sub(r.Lost).Round(time.Millisecond))
	if r.Filled.IsZero() {
		return text
	}
	return text + fmt.Sprintf(", filled %v later", r.Filled.Sub(r.Back).Round(time.Millisecond))
}

// StatusOf makes the parts of a NodeStatus that follow from readiness and services.
func StatusOf(node, version string, ready Readiness, services []Service) *NodeStatus {
	s := &NodeStatus{Node: node, Version: version, Ready: ready.Ready, Since: ready.Since, Services: map[ServiceState]int{}, Served: map[Served]int{}}
	// a lost VPP or API server is the cause of what other parts report
	for _, cause := range []string{"link", "watch", ""} {
		for _, p := range ready.Parts {
			if !p.OK && s.Reason == "" && (p.Name == cause || cause == "") {
				s.Reason = p.Name + ": " + p.Reason
			}
		}
	}
	for _, p := range ready.Parts {
		// two parts also say what they found
		if p.OK && p.Reason != "" && (p.Name != "pod-networks" && p.Name != "renderer" || strings.HasPrefix(p.Reason, "warning: ")) {
			s.Warnings = append(s.Warnings, p.Name+": "+strings.TrimPrefix(p.Reason, "warning: "))
		}
	}
	for i := range services {
		s.Services[services[i].State]++
		s.Served[services[i].Served]++
		if services[i].Changed.After(s.Changed) {
			s.Changed = services[i].Changed
		}
	}
	return s
}

// Build is the build information of this program.
type Build struct {
	// Version of the module: a tag, a pseudo-version, or "(devel)".
	Version string `json:"version"`
	// Revision of the source; "" if the build did not record it.
	Revision string `json:"revision,omitempty"`
	// Modified is true if the source had uncommitted changes.
	Modified bool `json:"modified,omitempty"`
	// Go is the version of the compiler.
	Go string `json:"go"`
	// Platform is operating system and architecture.
	Platform string `json:"platform"`
}

// ReadBuild reads the build information of this program.
func ReadBuild() Build {
	b := Build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the version. A version "(devel)" is followed by the start of the revision.
func (b Build) String() string {
	if b.Version != "(devel)" || b.Revision == "" {
		return b.Version
	}
	return b.Version + " " + b.Revision[:min(len(b.Revision), 12)]
}
