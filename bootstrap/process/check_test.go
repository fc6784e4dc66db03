package process

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/plan"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Clients outside: inside is in all source ranges, stranger in none.
const (
	inside   = "192.0.2.0"
	client   = "192.0.2.7"
	stranger = "100.64.0.7"
)

// wanted is the desired content of VPP, from the present manifests.
type wanted struct {
	rows    map[string]string   // by key, as the simulated VPP describes them
	guarded map[string]bool     // keys of which something may be dropped, with and without a row
	drops   []string            // what may be dropped, as text
	ranged  map[string]bool     // keys of rows with source ranges
	rivals  map[string][]string // services that want a key
	outside map[string][]string // endpoints for clients outside, by key
	refused map[string]string   // refused or dropped traffic of an address, by the key of its route
}

// want plans for the present manifests.
func (w *world) want() wanted {
	w.Helper()
	objects, problems, err := plan.Read([]string{w.manifests}, nil)
	if err != nil || len(problems) > 0 {
		w.Fatal(err, problems)
	}
	serving, err := config.Defaults().Services.Serving()
	if err != nil {
		w.Fatal(err)
	}
	report, problems, err := plan.Build(objects, plan.Options{Node: thisNode, Serving: serving, NAT44: nat44.Config{Pads: true}})
	if err != nil || len(problems) > 0 {
		w.Fatal(err, problems)
	}
	out := wanted{
		rows: map[string]string{}, guarded: map[string]bool{}, ranged: map[string]bool{}, rivals: map[string][]string{},
		outside: map[string][]string{}, refused: map[string]string{},
	}
	owners, left := map[string]string{}, []string{}
	for i := range report.Rows {
		key := keyOfVIP(report.Rows[i].VIP)
		out.rows[key], owners[key] = describeRow(&report.Rows[i]), report.Rows[i].Service
	}
	for _, f := range report.Frontends {
		key := keyOfVIP(f.Frontend)
		out.rivals[key] = append(out.rivals[key], f.Service)
		if owners[key] == f.Service && f.From != "local" {
			out.outside[key], out.ranged[key] = f.Endpoints, len(f.AllowSources) > 0
		}
		address, _, _ := strings.Cut(f.Frontend, ":")
		switch to := routeTo(address + "/32"); {
		case f.Kind == "clusterIP" && f.Action != "forward", f.Kind == "loadBalancerIP" && f.Action == "reject":
			out.refused[to] += fmt.Sprintln(f.Service, f.Scope, f.Action)
		case f.Scope == "external" && f.Action != "reject":
			// other nodes, or other ports, serve the address
			left = append(left, to)
		}
		if len(f.AllowSources) > 0 || f.Action == "drop" {
			out.guarded[key] = true
			out.drops = append(out.drops, fmt.Sprint(f.Service, key, f.From, f.Action, f.AllowSources))
		}
	}
	for _, to := range left {
		delete(out.refused, to)
	}
	return out
}

// keyOfVIP turns "10.96.0.10:80/TCP" into the key of a row.
func keyOfVIP(vip string) string {
	return strings.NewReplacer("/TCP", "/6", "/UDP", "/17").Replace(vip)
}

// describeRow writes a row as probe.Serving does. VPP remembers a client for what is left of its
// affinity when the ended session is gone.
func describeRow(r *api.Row) string {
	var backends []string
	for _, l := range r.Locals {
		backends = append(backends, fmt.Sprintf("%s weight %d", l.Address, l.Weight))
	}
	slices.Sort(backends)
	text := fmt.Sprintf("%s lb [%s] %s", keyOfVIP(r.VIP), strings.Join(backends, ", "), strings.Join(r.Flags, " "))
	if r.AffinitySeconds > 0 {
		kept := nat44.DefaultTimeouts().TCPTransitory
		if strings.HasSuffix(r.VIP, "/UDP") {
			kept = nat44.DefaultTimeouts().UDP
		}
		text += fmt.Sprint(" affinity ", max(r.AffinitySeconds, kept+1)-kept)
	}
	tag := nat44.Tag{Hash: nat44.ServiceHash(r.Service), Affinity: r.AffinitySeconds}
	return text + fmt.Sprintf(" tag %q", tag)
}

// changed notes the rows that may be written from now on, after a change of the manifests.
func (w *world) changed() {
	w.Helper()
	now := w.want()
	w.lists = w.lists || !slices.Equal(w.present.drops, now.drops)
	for _, change := range []struct{ a, b wanted }{{w.present, now}, {now, w.present}} {
		for key, row := range change.a.rows {
			if change.b.rows[key] != row {
				at, _ := parseKey(key)
				w.touched[key], w.touched[addressOf(at.Addr().String())] = true, true
				w.lists = w.lists || change.a.guarded[key] // it may have another owner
			}
		}
		for key, rivals := range change.a.rivals {
			// the agent may read one of several changed files before an earlier one
			all := slices.Concat(rivals, change.b.rivals[key])
			if slices.Sort(all); len(slices.Compact(all)) > 1 && !slices.Equal(rivals, change.b.rivals[key]) {
				at, _ := parseKey(key)
				w.touched[key], w.touched[addressOf(at.Addr().String())] = true, true
			}
		}
		for key, text := range change.a.refused {
			if change.b.refused[key] != text {
				w.touched[key] = true
			}
		}
	}
	w.present = now
}

// serving are rows with the backends that new connections reach.
func serving(rows []string) (texts []string) {
	for _, row := range rows {
		if text, serves := probe.Serving(row); serves {
			texts = append(texts, text)
		}
	}
	return texts
}

// equal reports whether VPP has exactly the desired rows, and the foreign row.
func (w *world) equal() string {
	var want []string
	if w.foreign != "" {
		want = append(want, w.foreign)
	}
	for _, row := range w.present.rows {
		want = append(want, row)
	}
	slices.Sort(want)
	return cmp.Diff(want, serving(w.vpp.Rows()))
}

// verify compares VPP with the cluster, and the written rows with the rows that had to change.
func (w *world) verify() {
	w.Helper()
	if diff := w.equal(); diff != "" {
		w.Fatalf("VPP is not as wanted (-want +got)\n%s", diff)
	}
	drained := w.draining() // before the changes are taken: an entry may go at any time
	for _, change := range w.witness.take() {
		// it is made with the first route
		first := strings.HasPrefix(change.key, sourcePrefix) && !w.sources[change.key]
		w.sources[change.key] = true
		switch {
		case first, w.verified == 0, w.touched[change.key], change.aboutLists() && w.lists:
		case w.drained[change.key]:
			// An entry that drained when VPP was compared last has gone since: it had no
			// connections, or its endpoint is used again. Its row alone is excused, until the next
			// comparison.
		case w.mayEnd(change.key):
		default:
			w.Errorf("written although nothing about it has changed: %s", change.what)
		}
	}
	w.probe(drained)
	clear(w.touched)
	w.drained, w.lists = drained, false
	w.verified++
	w.traffic.check(w.T)
}

// draining returns the keys of rows with draining endpoints, and those of their addresses.
func (w *world) draining() map[string]bool {
	drained := map[string]bool{}
	for _, row := range w.vpp.Rows() {
		if key := keyOfRow(row); len(probe.Draining(row)) > 0 {
			at, _ := parseKey(key)
			drained[key], drained[addressOf(at.Addr().String())] = true, true
		}
	}
	return drained
}

// mayEnd reports whether a key is that of a session that may be ended: its row has changed, it
// drains, or it has affinity, which outlives no silent session.
func (w *world) mayEnd(key string) bool {
	client, is := strings.CutPrefix(key, sessionPrefix)
	through := w.through[client]
	row, stays := w.present.rows[through]
	return is && through != "" && (!stays || w.touched[through] || w.drained[through] || strings.Contains(row, " affinity "))
}

// probe sends new clients to every row: allowed ones reach an endpoint, others do not, and no other
// packet is dropped. While an entry leaves that drained when VPP was compared, new clients of its
// row may reach it, see docs/semantics.md.
func (w *world) probe(drained map[string]bool) {
	w.Helper()
	for key := range w.present.rows {
		vip, proto := parseKey(key)
		for _, source := range []string{client, stranger} {
			w.port++
			time.Sleep(4 * time.Millisecond)
			v := w.vpp.Send(simulator.Packet{In: uplink, Src: netip.AddrPortFrom(netip.MustParseAddr(source), w.port), Dst: vip, Proto: proto})
			w.through[fmt.Sprintf("%s/%d", v.Src, proto)] = key
			reached := v.Action == simulator.Delivered && slices.Contains(w.present.outside[key], v.Dst.String())
			changes := drained[key] && w.witness.wrote(key)
			if want := len(w.present.outside[key]) > 0 && (source == client || !w.present.ranged[key]); reached != want && !changes {
				w.Errorf("%s from %s: reached an endpoint %t, want %t: %s", key, source, reached, want, v)
			}
		}
	}
	w.orphanRules()
	w.refusals()
}

// routes counts the routes that refuse or drop, by their keys.
func (w *world) routes() map[string]int {
	there := map[string]int{}
	for line := range strings.Lines(w.vpp.State()) {
		// table 0 10.96.0.33/32 unreachable
		words := strings.Fields(line)
		if len(words) == 4 && words[0] == "table" && (words[3] == "unreachable" || words[3] == "drop") && strings.HasSuffix(words[2], "/32") {
			there[routeTo(words[2])]++
		}
	}
	return there
}

// refusals compares the routes that refuse or drop with the expected ones: an address without
// endpoints has one, and no other address.
func (w *world) refusals() {
	w.Helper()
	there := w.routes()
	served := map[string]bool{}
	for key := range w.present.rows {
		at, _ := parseKey(key)
		served[routeTo(at.Addr().String()+"/32")] = true
	}
	for key, n := range there {
		if w.before[key] == n { // of the network that the node is connected to
			continue
		}
		if w.present.refused[key] == "" || n > 1 {
			w.Errorf("%d routes that refuse %s, wanted for %q", n, key, w.present.refused[key])
		}
	}
	for key, why := range w.present.refused {
		if !served[key] && there[key] == 0 {
			w.Errorf("no route refuses %s, wanted for %q", key, why)
		}
	}
}

// orphanRules finds rules that drop packets of a frontend without source ranges, and duplicate
// ones.
func (w *world) orphanRules() {
	w.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(w.vpp.State()) {
		list, rule, is := strings.Cut(strings.TrimSpace(line), " rule ")
		words := strings.Fields(rule)
		if !is || words[1] != "deny" {
			continue
		}
		// 0 deny SRC > 203.0.113.9/32 proto 6 ports 0-65535 > 80-80
		port, _, _ := strings.Cut(words[len(words)-1], "-")
		key := strings.TrimSuffix(words[4], "/32") + ":" + port + "/" + words[6]
		if !w.present.guarded[key] {
			w.Errorf("a rule without a frontend: %s", line)
		}
		if text := list + strings.Join(words[1:], " "); seen[text] {
			w.Errorf("a rule stands twice: %s", line)
		} else {
			seen[text] = true
		}
	}
}

func parseKey(key string) (netip.AddrPort, uint8) {
	at, proto, _ := strings.Cut(key, "/")
	if proto == "17" {
		return netip.MustParseAddrPort(at), simulator.ProtoUDP
	}
	return netip.MustParseAddrPort(at), simulator.ProtoTCP
}
