package namespaces

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// layout is a way in which VPP is set up by a CNI or by hand. Its scripts (see world.script) are
// carried out in the order of their fields.
type layout struct {
	name string
	// vars replace defaults.
	vars []string
	// v6: there is IPv6. hosted: the processes of node n1 are behind an interface of VPP, in the
	// namespace host.
	v6, hosted bool
	// plugin is one of VPP that the layout needs beside those of all layouts.
	plugin string
	// workers are those of VPP at node n1, at most one for each core but the first, unless
	// TROUPE_VPP_WORKERS is their number.
	workers int
	// more are further namespaces, of routers, and others further ones of hosts.
	more, others []string
	// fabric, host and last are carried out once, node before the pods of each node, pod for each
	// pod, and routes after the pods of each node.
	fabric, node, pod, routes, host, last string
	// flags are further ones of the agent.
	flags []string
	// only are the checks to run; nil = all. also are further checks, and not are the names of
	// checks to leave out.
	only, also []check
	not        []string
	// instead are checks that differ from those of the same name in all other layouts, each with
	// the reason in the comment beside it.
	instead []check
	// known are the checks that fail today, by what fails. The test fails when one holds, unless it
	// was told the renderer.
	known map[string][]string
	// not2606 is why the layout is not played with VPP 26.06; "" = it is.
	not2606 string
	// says is what the readiness of the agent and the services behind the interface say where they
	// are not served; "" = the agent is ready.
	says string
	// warns is what the readiness of a ready agent says after the known checks have failed.
	warns string
	// looks are commands of docs/cni.md, each with a regular expression for what it prints.
	looks []string
	// steps follow when all checks were made.
	steps []step
}

// step is a change of the layout while the agent runs.
type step struct {
	name, script string
	known        map[string][]string
}

// renderer is that of the agent in all layouts.
var renderer = flag.String("renderer", "", "`renderer` of the agent in all layouts; its default otherwise")

// patience is how long a check that must hold is repeated.
const patience = 20 * time.Second

// places are the namespaces beside n1, n2 and fab, peers those with a host.
func (l *layout) places() []string { return append(l.peers(), l.more...) }

func (l *layout) peers() []string {
	all := []string{"c1", "b1", "b2", "r1", "ext"}
	if l.hosted {
		all = append(all, "host")
	}
	return append(all, l.others...)
}

// variables are those of scripts and checks. Those that end with the number of a node exist without
// it for the node itself, and with "their" in front for the other one.
func (l *layout) variables(node, other string) []string {
	vars := map[string]string{}
	for _, list := range [][]string{defaults, l.vars} {
		for i := 0; i < len(list); i += 2 {
			vars[list[i]] = list[i+1]
		}
	}
	if *renderer == "cnat" {
		vars["loop"] = podNetworkEnd // CNAT has no setting for it
	}
	for _, name := range []string{"node", "net", "bvi", "node6", "net6", "bvi6", "up", "first", "last", "private", "public"} {
		vars[name], vars["their"+name] = vars[name+node], vars[name+other]
	}
	maps.Copy(vars, podAddress)
	for pod, address := range podAddress6 {
		vars[pod+"6"] = address
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		all = append(all, name, vars[name])
	}
	return all
}

// TestLayouts: what pods, the host and clients outside get from services and without them, in the
// layouts of other CNIs.
func TestLayouts(t *testing.T) {
	base := bareStage(t)
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) { newWorld(base, t, l).play() })
	}
}

// play is the story of a layout.
func (w *world) play() {
	w.Helper()
	checks := w.checks()
	names := map[string]bool{}
	for _, c := range checks {
		names[c.name] = true
	}
	for _, list := range w.known {
		for _, name := range list {
			if !names[name] {
				w.Errorf("no check has the name %q", name)
			}
		}
	}
	w.judge("without an agent", slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return !c.direct }), nil)
	if w.Failed() {
		return // the layout is wrong
	}
	w.apply(w.objects())
	w.begin()
	begun := time.Now()
	hold := w.judge("with the agent", checks, w.known)
	if w.warns != "" && *renderer == "" {
		controlplane.Eventually(w, "readiness warns of what fails", func() string {
			text, status := w.ask("/readyz?verbose")
			if status != http.StatusOK || !regexp.MustCompile(w.warns).MatchString(text) {
				return text
			}
			return ""
		})
		w.Logf("readiness says %q, %.1f s after the first packet", w.warns, time.Since(begun).Seconds())
	}
	w.lookAt()
	w.keeps(hold)
	for _, s := range w.steps {
		w.script("1", s.script)
		// Foreign protocols pass until an interface has its roles again. In another table clients
		// are not refused.
		w.judge(s.name, slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return c.how == "raw" || c.by == "refused" }), s.known)
	}
}

// lookAt runs the commands of docs/cni.md.
func (w *world) lookAt() {
	w.Helper()
	socket := filepath.Join(w.dir, "control.sock")
	for i := 0; i < len(w.looks) && *renderer == ""; i += 2 {
		arguments := append(strings.Fields(w.looks[i]), "--control-socket", socket)
		if arguments[0] == "check" {
			arguments = append(arguments, "--node-name", "n1", "--kube-source", "files:"+filepath.Join(w.dir, "objects"), "--vpp-api-socket", filepath.Join(w.dir, "api.sock"))
		}
		said, _ := exec.Command(w.troupe, arguments...).CombinedOutput() // check also fails for other reasons
		line := regexp.MustCompile(`(?m)^.*` + expand(w.looks[i+1], w.variables("1", "2")...) + `.*$`).FindString(string(said))
		if line == "" {
			w.Errorf("troupe %s says nothing of %q:\n%s", w.looks[i], w.looks[i+1], said)
		}
		w.Logf("troupe %s: %s", w.looks[i], strings.Join(strings.Fields(line), " "))
	}
}

// begin starts the agent and waits until it says what it must.
func (w *world) begin() {
	w.Helper()
	flags := w.flags
	if *renderer != "" {
		flags = append([]string{"--renderer", *renderer}, flags...)
	}
	w.spawnAgent(flags...)
	if w.says == "" {
		w.ready(true)
		return
	}
	controlplane.Eventually(w, "only the part interfaces may be not ready, and says "+w.says, func() string {
		text, _ := w.ask("/readyz?verbose")
		others := strings.Count(text, "[-]") - strings.Count(text, "[-]interfaces ")
		if *renderer == "" && !strings.Contains(text, w.says) || others > 0 || !strings.Contains(text, "[+]cnat ok") {
			return text
		}
		return ""
	})
	if *renderer != "" {
		return // another renderer may serve it
	}
	services, _ := w.ask("/api/v1/services")
	if !strings.Contains(services, w.says) {
		w.Errorf("no service has the error: %s", services)
	}
}

// judge makes checks, all at once. One that must hold is repeated; one that is known to fail is
// made once, and must not hold. It returns those that hold.
func (w *world) judge(when string, checks []check, known map[string][]string) (hold []check) {
	w.Helper()
	because := map[string]string{}
	for reason, names := range known {
		for _, name := range names {
			because[name] = reason
		}
	}
	results := make([]string, len(checks))
	var group sync.WaitGroup
	for i, c := range checks {
		group.Go(func() {
			for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
				results[i] = w.make(c)
				if results[i] == "" || because[c.name] != "" || time.Since(begun) > patience {
					return
				}
			}
		})
	}
	group.Wait()
	for i, c := range checks {
		reason := because[c.name]
		switch {
		case results[i] == "" && reason != "" && *renderer == "":
			w.Errorf("%s: %q holds now: take it off the known ones (%s)", when, c.name, reason)
		case results[i] == "":
			hold = append(hold, c)
		case reason != "":
			w.Logf("%s: known: %s: %s (%s)", when, c.name, results[i], reason)
		default:
			w.Errorf("%s: %s: %s", when, c, results[i])
		}
	}
	w.Logf("%s: %d of %d hold", when, len(hold), len(checks))
	return hold
}

// keeps: connections stay open while the agent is killed and starts again, which changes nothing in
// VPP.
func (w *world) keeps(checks []check) {
	w.Helper()
	type open struct {
		check
		answer string
	}
	var all []open
	for _, c := range checks {
		if c.how != "tcp" || strings.Contains(c.by, "lost") || c.by == "refused" {
			continue
		}
		answer, err := w.to(c.from, "hold", c.source+" "+c.to, 0)
		if err != nil {
			w.Errorf("open a connection: %s: %v", c, err)
			continue
		}
		all = append(all, open{c, answer})
	}
	again := func(when string) {
		w.Helper()
		for _, o := range all {
			if got, err := w.to(o.from, "again", o.source+" "+o.to, 0); err != nil || got != o.answer {
				w.Errorf("%s: an open connection: %s: %q, %v, want %q", when, o.check, got, err, o.answer)
			}
		}
	}
	w.agent.Kill()
	again("the agent is dead")
	w.begin()
	again("the agent is back")
	metrics, status := w.ask("/metrics")
	if wrote := regexp.MustCompile(`(?m)^troupe_vpp_operations_total.* [1-9].*`).FindAllString(metrics, -1); status != http.StatusOK || len(wrote) > 0 {
		w.Errorf("the restart changed VPP: %d, %s", status, wrote)
	}
	w.Logf("%d connections held over a kill of the agent", len(all))
}

// String is the check in words.
func (c check) String() string {
	return fmt.Sprintf("%s (%s, %s %s => %s, which sees %s)", c.name, c.from, c.how, c.to, c.by, c.saw)
}
