package external

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// pantry is an External in memory whose families say what the test says.
type pantry struct {
	families []string
	kept     map[string][]byte
	first    []ExternalUpdate
	last     map[string]ExternalUpdate // by family
	updates  chan ExternalUpdate
	broken   error // of Save
	saves    int
}

func newPantry(families ...string) *pantry {
	return &pantry{families: families, kept: map[string][]byte{}, last: map[string]ExternalUpdate{}}
}

func (s *pantry) Families() []string                              { return s.families }
func (s *pantry) Load(context.Context) (map[string][]byte, error) { return maps.Clone(s.kept), nil }

func (s *pantry) Save(_ context.Context, source string, document []byte) error {
	s.saves++
	if s.broken != nil {
		return s.broken
	}
	if s.kept[source] = document; document == nil {
		delete(s.kept, source)
	}
	return nil
}

func (s *pantry) Run(ctx context.Context, out func(ExternalUpdate)) error {
	for _, family := range s.families { // everything is read again
		if last, known := s.last[family]; known {
			out(last)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case u := <-s.updates:
			if u.Family == "" {
				return errors.New("gave up")
			}
			s.last[u.Family] = u
			out(u)
		}
	}
}

// says is what a family says: sources and documents alternate.
func says(family string, pairs ...string) ExternalUpdate {
	u := ExternalUpdate{Family: family, Documents: map[string][]byte{}}
	for i := 0; i < len(pairs); i += 2 {
		u.Documents[pairs[i]] = externally(pairs[i+1])
	}
	return u
}

// externally puts a head before the rest of a document.
func externally(rest string) []byte {
	return []byte(`{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration", ` + rest + `}`)
}

// mapped is a document with one static mapping of a port.
func mapped(external, to string) string {
	return `"staticMappings": [{"external": "` + external + `", "to": ["` + to + `"]}]`
}

// withExternal plays in a house with external configuration.
func withExternal(t *testing.T, s *pantry, play func(h *house)) {
	t.Helper()
	inHouse(t, 1, func(h *house, _ *runtime.Options) {
		h.deps.External, s.updates = s, make(chan ExternalUpdate, 100) // of the bubble that waits for it
		for _, u := range s.first {
			s.updates <- u
		}
	}, play)
}

// command gives a command and returns its answer.
func (h *house) command(source, document string) error {
	h.Helper()
	m := &ExternalApply{Source: source}
	if document != "" {
		m.Document = externally(document)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*ExternalPatience)
	defer cancel()
	answer, err := h.sys.Ask(ctx, PathExternal, m)
	if err != nil {
		h.Fatal(err)
	}
	return answer.(*CommandResult).Err
}

// entries shows external configuration as "name source state owner".
func (h *house) entries() string {
	h.Helper()
	answer, err := h.sys.Ask(context.Background(), PathExternal, &ExternalQuery{})
	if err != nil {
		h.Fatal(err)
	}
	var lines []string
	for _, e := range answer.(*ExternalPage).Entries {
		lines = append(lines, strings.TrimSpace(e.Name+" "+e.Source+" "+e.State+" "+e.Owner))
	}
	return strings.Join(lines, "\n")
}

// outsideRows are the rows of external configuration that VPP holds, as "key>backend".
func (h *house) outsideRows() string {
	h.Helper()
	state, err := nat44.Read(context.Background(), h.vpp)
	if err != nil {
		h.Fatal(err)
	}
	var rows []string
	for _, k := range slices.SortedFunc(maps.Keys(state.Rows), frontend.Key.Compare) {
		if row := state.Rows[k]; nat44.External(row.Tag) {
			rows = append(rows, k.String()+">"+row.Locals[0].Addr.String())
		}
	}
	return strings.Join(rows, " ")
}

func (h *house) expect(what, want string, got func() string) {
	h.Helper()
	for deadline := time.Now().Add(time.Minute); got() != want; h.run(time.Second) {
		if time.Now().After(deadline) {
			h.journal()
			h.Fatalf("%s:\n%s\nwant\n%s", what, got(), want)
		}
	}
}

// TestExternalLayers: the layer with the highest priority is in VPP; when it goes, the one below is, without a write where both want the same.
func TestExternalLayers(t *testing.T) {
	s := newPantry("file", "etcd:")
	s.first = append(s.first, says("file", "file", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")))
	s.first = append(s.first, says("etcd:", "etcd:all", mapped("203.0.113.1:80/TCP", "10.1.1.3:80")))
	withExternal(t, s, func(h *house) {
		h.expect("etcd ranks above the file", "203.0.113.1:80/TCP>10.1.1.3", h.outsideRows)
		if err := h.command("ops", mapped("203.0.113.1:80/TCP", "10.1.1.4:80")+`, "identityMappings": ["192.168.16.1:4789/UDP", "192.168.16.7"]`); err != nil {
			t.Fatal(err)
		}
		h.expect("the answer came when it was in VPP", "192.168.16.1:4789/UDP>192.168.16.1 192.168.16.7:0/0>192.168.16.7 203.0.113.1:80/TCP>10.1.1.4", h.outsideRows)
		h.expect("entries", `192.168.16.1:4789/UDP ops in-sync
192.168.16.7 ops in-sync
203.0.113.1:80/TCP ops in-sync
203.0.113.1:80/TCP etcd:all shadowed ops
203.0.113.1:80/TCP file shadowed ops`, h.entries)
		if err := h.command("ops", ""); err != nil || h.outsideRows() != "203.0.113.1:80/TCP>10.1.1.3" {
			t.Errorf("after ops has gone VPP holds %s: %v", h.outsideRows(), err)
		}
		s.updates <- says("etcd:", "etcd:all", mapped("203.0.113.1:80/TCP", "10.1.1.2:80"))
		h.expect("another document of etcd", "203.0.113.1:80/TCP>10.1.1.2", h.outsideRows)
		writes, _ := h.wire.counts()
		s.updates <- says("etcd:")
		h.expect("owner", "203.0.113.1:80/TCP file in-sync", h.entries)
		if after, _ := h.wire.counts(); after != writes {
			t.Errorf("%d writes although the layer below wants the same", after-writes)
		}
		s.updates <- says("file")
		h.expect("nothing is left", "", h.outsideRows)
		if err := h.command("nobody", ""); err != nil {
			t.Errorf("an unknown source is an empty layer: %v", err)
		}
		h.settle(time.Minute)
		h.quiet()
	})
}

// TestExternalAndServices: services win whenever they come, and who loses is told the name of the owner.
func TestExternalAndServices(t *testing.T) {
	withExternal(t, newPantry(), func(h *house) {
		h.serve("web", "10.96.0.1", "10.1.1.2")
		h.settle(time.Minute)
		writes, _ := h.wire.counts()
		err := h.command("ops", `"staticMappings": [{"external": "10.96.0.1:80/TCP", "to": ["10.1.1.5:80"]}, {"external": "203.0.113.1:80/TCP", "to": ["10.1.1.5:80"]}]`)
		if !errors.Is(err, errExternalRefused) || !strings.Contains(err.Error(), "10.96.0.1:80/TCP: is in use by ns/web") {
			t.Errorf("the answer is %v", err)
		}
		if h.outsideRows() != "" || h.entries() != "" {
			t.Errorf("left in VPP is %s, of the layer %s", h.outsideRows(), h.entries())
		}
		if after, _ := h.wire.counts(); after-writes > 2 {
			t.Errorf("%d writes: at most the other row comes and goes", after-writes)
		}
		if err := h.command("ops", mapped("10.96.0.9:80/TCP", "10.1.1.5:80")); err != nil {
			t.Fatal(err)
		}
		h.serve("late", "10.96.0.9", "10.1.1.3")
		h.expect("the service takes it over", "10.96.0.9:80/TCP ops refused ns/late", h.entries)
		h.settle(time.Minute)
		h.cluster.change(func() { delete(h.cluster.services, "ns/late") })
		h.expect("and gives it back", "10.96.0.9:80/TCP>10.1.1.5", h.outsideRows)
		h.expect("in sync again", "10.96.0.9:80/TCP ops in-sync", h.entries)
	})
}

// TestExternalCommandsChangeAllOrNothing: whatever is wrong with one entry, nothing of the document stays, and what was there before is there again.
func TestExternalCommandsChangeAllOrNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		before   func(h *house, s *pantry)
		document string
		want     string
	}{
		"an invalid entry":     {nil, mapped("203.0.113.2:80/TCP", "x"), `staticMappings[0] 203.0.113.2:80/TCP: to[0]: "x" is not an IPv4 address`},
		"an unknown interface": {nil, mapped("203.0.113.2:80/TCP", "10.1.1.5:80") + `, "interfaces": [{"name": "none7", "role": "output"}]`, "interface none7: VPP has no interface of this name"},
		"a needed interface":   {func(h *house, _ *pantry) { h.serve("w", "10.96.0.1", "10.1.1.2"); h.settle(time.Minute) }, `"interfaces": [{"name": "pod2", "role": "none"}]`, "interface pod2: services need it"},
		"a contradiction":      {nil, mapped("203.0.113.2", "10.1.7.7"), "10.1.7.7 is translated by 10.1.7.7 of top"},
		"somebody else in VPP": {func(h *house, _ *pantry) {
			h.occupy(frontend.Key{Addr: netip.MustParseAddr("203.0.113.2"), Port: 80, Proto: frontend.TCP}, true)
			h.run(2 * h.deps.Timing.Audit)
		}, mapped("203.0.113.2:80/TCP", "10.1.1.5:80"), `is in use by VPP: load-balancing mapping "theirs"`},
		"VPP refuses":       {func(h *house, _ *pantry) { h.wire.refuse = refuseMapping }, mapped("203.0.113.2", "10.1.1.5"), "203.0.113.2: add static mapping 203.0.113.2 -> 10.1.1.5"},
		"it cannot be kept": {func(_ *house, s *pantry) { s.broken = errBroken }, mapped("203.0.113.2:80/TCP", "10.1.1.5:80"), "keep ops: broken"},
		"VPP is not there":  {func(h *house, _ *pantry) { h.wire.disconnect() }, mapped("203.0.113.2:80/TCP", "10.1.1.5:80"), "not done in time: bring ops into VPP"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPantry()
			withExternal(t, s, func(h *house) {
				h.settle(time.Minute)
				for source, document := range map[string]string{"ops": mapped("203.0.113.1:80/TCP", "10.1.1.4:80"), "top": `"priority": 900, "identityMappings": ["10.1.7.7"]`} {
					if err := h.command(source, document); err != nil {
						t.Fatal(err)
					}
				}
				if tt.before != nil {
					tt.before(h, s)
				}
				kept := string(s.kept["ops"])
				if err := h.command("ops", tt.document); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("the answer is %v, want one with %q", err, tt.want)
				}
				h.wire.refuse, s.broken = nil, nil
				h.run(ExternalPatience)
				if !h.wire.state.GetUp() {
					h.wire.connect()
				}
				h.expect("VPP", "10.1.7.7:0/0>10.1.7.7 203.0.113.1:80/TCP>10.1.1.4", h.outsideRows)
				h.expect("entries", "10.1.7.7 top in-sync\n203.0.113.1:80/TCP ops in-sync", h.entries)
				if string(s.kept["ops"]) != kept {
					t.Errorf("kept is %s", s.kept["ops"])
				}
			})
		})
	}
}

// TestExternalContradictionIsNeverTold: what contradicts another layer is refused before the renderer hears of anything that stands beside it,
// so that VPP serves it at no time and takes no NAT address of somebody else for one that has been ours.
func TestExternalContradictionIsNeverTold(t *testing.T) {
	withExternal(t, newPantry(), func(h *house) {
		h.settle(time.Minute)
		if err := h.command("top", `"priority": 900, "identityMappings": ["10.1.7.7"]`); err != nil {
			t.Fatal(err)
		}
		h.settle(time.Minute)
		writes, _ := h.wire.counts()
		err := h.command("ops", `"natAddresses": ["203.0.113.9"], "staticMappings": [
			{"external": "203.0.113.2", "to": ["10.1.7.7"]}, {"external": "203.0.113.1:80/TCP", "to": ["10.1.1.5:80"]}]`)
		if !errors.Is(err, errExternalRefused) {
			t.Errorf("the answer is %v", err)
		}
		h.run(ExternalPatience)
		if after, _ := h.wire.counts(); after != writes {
			t.Errorf("a refused command cost %d writes", after-writes)
		}
		h.expect("entries", "10.1.7.7 top in-sync", h.entries)
	})
}

// TestExternalFamiliesSpeakForThemselves: a layer of the control socket is not that of the file because its name begins like it.
func TestExternalFamiliesSpeakForThemselves(t *testing.T) {
	s := newPantry("file")
	s.first = append(s.first, says("file"))
	withExternal(t, s, func(h *house) {
		h.settle(time.Minute)
		if err := h.command("fileserver", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")); err != nil {
			t.Fatal(err)
		}
		s.updates <- says("file", "file", mapped("203.0.113.2:80/TCP", "10.1.1.3:80"))
		h.expect("the file is taken", "203.0.113.1:80/TCP fileserver in-sync\n203.0.113.2:80/TCP file in-sync", h.entries)
		s.updates <- says("file")
		h.expect("the file is gone", "203.0.113.1:80/TCP fileserver in-sync", h.entries)
		if s.kept["fileserver"] == nil {
			t.Error("the layer is not kept any more")
		}
	})
}

// refuseMapping lets VPP refuse simple mappings.
func refuseMapping(req api.Message) error {
	if _, simple := req.(*nat44_ed.Nat44AddDelStaticMappingV2); simple {
		return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
	}
	return nil
}

// TestExternalSettingsGoThoughTheirKeeperDies: VPP does not say whose an address is, so what is to go is known to more than one.
func TestExternalSettingsGoThoughTheirKeeperDies(t *testing.T) {
	s := newPantry("file")
	s.first = append(s.first, says("file", "file", `"natAddresses": ["203.0.113.9"], "interfaces": [{"name": "uplink0", "role": "output"}]`))
	withExternal(t, s, func(h *house) {
		settings := func() string {
			state, err := nat44.Read(context.Background(), h.vpp)
			if err != nil {
				h.Fatal(err)
			}
			return fmt.Sprint(state.Pool, len(state.Output))
		}
		h.expect("the file is in VPP", "[203.0.113.9] 1", settings)
		h.wire.disconnect()
		s.updates <- says("file")
		h.run(time.Second)
		if err := h.sys.Kill(PathExternal); err != nil {
			t.Fatal(err)
		}
		h.run(time.Second)
		h.wire.connect()
		h.expect("nothing is left", "[] 0", settings)
	})
}

// TestExternalSettings: NAT addresses and roles come and go with their layers, and services are served meanwhile.
func TestExternalSettings(t *testing.T) {
	withExternal(t, newPantry(), func(h *house) {
		h.serve("web", "10.96.0.1", "10.1.1.2")
		h.settle(time.Minute)
		if err := h.command("ops", `"natAddresses": ["203.0.113.9"], "interfaces": [{"name": "uplink0", "role": "output"}, {"name": "pod4", "role": "nat"}]`); err != nil {
			t.Fatal(err)
		}
		vpp := h.wire.vpp.State()
		for _, want := range []string{"203.0.113.9", "pod4 in out"} {
			if !strings.Contains(vpp, want) {
				t.Errorf("VPP lacks %q:\n%s", want, vpp)
			}
		}
		state, err := nat44.Read(context.Background(), h.vpp)
		uplink := h.wire.vpp.Interfaces()["uplink0"]
		if err != nil || !state.Output[uplink] || state.Roles[uplink] != 0 {
			t.Errorf("uplink0 is no output interface: %+v, %v", state, err)
		}
		h.settle(time.Minute)
		h.quiet()
		for _, path := range []string{PathExternal, PathRenderer(nat), PathExternal} {
			writes, _ := h.wire.counts()
			if err := h.sys.Kill(path); err != nil {
				t.Fatal(err)
			}
			h.run(10 * time.Second)
			if after, _ := h.wire.counts(); after != writes {
				t.Errorf("the death of %s cost %d writes", path, after-writes)
			}
		}
		if err := h.command("ops", ""); err != nil {
			t.Fatal(err)
		}
		if state, err = nat44.Read(context.Background(), h.vpp); err != nil || len(state.Output)+len(state.Pool) != 0 || state.Roles[uplink] != nat44.Both {
			t.Errorf("left is %+v, %v", state, err)
		}
		h.settle(time.Minute)
	})
}

// TestExternalGoodStays: what cannot be read or understood leaves the last good layer, with a warning that does not make the node unready.
func TestExternalGoodStays(t *testing.T) {
	s := newPantry("file", "etcd:")
	s.first = append(s.first, says("file", "file", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")), says("etcd:"))
	withExternal(t, s, func(h *house) {
		h.expect("the file", "203.0.113.1:80/TCP>10.1.1.2", h.outsideRows)
		for want, update := range map[string]ExternalUpdate{
			`file: invalid external configuration: staticMappings[0] x`: says("file", "file", mapped("x", "y")),
			"file: not YAML":          {Family: "file", Unreadable: map[string]error{"file": errors.New("not YAML")}},
			"file: permission denied": {Family: "file", Err: errors.New("permission denied")},
			"etcd: timed out":         {Family: "etcd:", Err: errors.New("timed out")},
		} {
			s.updates <- says("file", "file", mapped("203.0.113.1:80/TCP", "10.1.1.2:80"))
			s.updates <- says("etcd:")
			s.updates <- update
			h.run(5 * time.Second)
			report := h.deps.Readiness.Load()
			at := slices.IndexFunc(report.Parts, func(p Part) bool { return p.Name == "external" })
			if !report.Ready || at < 0 || !report.Parts[at].OK || !strings.HasPrefix(report.Parts[at].Reason, want) {
				t.Errorf("readiness %+v, want a warning %q", report, want)
			}
			h.expect("the last good one", "203.0.113.1:80/TCP>10.1.1.2", h.outsideRows)
		}
		s.updates <- ExternalUpdate{} // it gives up
		s.updates <- says("file", "file", mapped("203.0.113.1:80/TCP", "10.1.1.3:80"))
		h.expect("a source that was started again", "203.0.113.1:80/TCP>10.1.1.3", h.outsideRows)
		h.settle(time.Minute)
	})
}

// TestExternalLeftoversWait: what an earlier run has left of external configuration stays until every source has spoken, and goes then; nobody
// becomes unready for it.
func TestExternalLeftoversWait(t *testing.T) {
	withRenderer(t, func(s *stage) {
		layer, err := external.Decode(externally(mapped("203.0.113.1:80/TCP", "10.1.1.2:80")), "file")
		if err != nil {
			t.Fatal(err)
		}
		merged := external.Merge([]*external.Layer{layer})
		for _, row := range merged.Rows(s.deps.NAT44)["file"] {
			s.exec(nat44.Messages(nat44.Op{Verb: nat44.AddRow, Key: row.Key, Row: &row})[0])
		}
		s.kill()
		s.connected()
		s.found(1)
		s.begin(1)
		s.run(5 * time.Second)
		if got := s.vips(); !slices.Equal(got, []string{"203.0.113.1:80/6"}) || !s.readiness().GetOk() {
			t.Fatalf("VPP holds %q, %v", got, s.readiness())
		}
		if diff := s.ask(&DiffQuery{}).(*DiffPage); len(diff.Operations) != 0 {
			t.Errorf("diff %+v", diff)
		}
		if n := len(all[*messages.Resync](s, PathExternal)); n < 2 {
			t.Errorf("external configuration was asked for %d times", n)
		}
		writes, _ := s.wrote(func() {
			s.tell(&externalWants{generation: 1, merged: merged})
			s.run(5 * time.Second)
			s.tell(&externalWants{generation: 2, merged: merged, complete: true})
			s.run(5 * time.Second)
		})
		if status := latest[*externalStatus](s, PathExternal); writes != 0 || status.generation != 2 || !status.settled || status.entries["203.0.113.1:80/TCP"].State != externalInSync {
			t.Errorf("%d writes, %+v", writes, status)
		}
		s.tell(&externalWants{generation: 1, merged: external.Merge(nil)}) // overtaken
		if got := s.vips(); len(got) != 1 {
			t.Errorf("VPP holds %q", got)
		}
		s.tell(&externalWants{generation: 3, merged: external.Merge(nil), complete: true})
		if got := s.vips(); len(got) != 0 || !latest[*externalStatus](s, PathExternal).settled {
			t.Errorf("VPP holds %q", got)
		}
	})
}

// TestExternalCommandsEndWithTheActor: who waits when it dies gets an answer, too.
func TestExternalCommandsEndWithTheActor(t *testing.T) {
	withExternal(t, newPantry(), func(h *house) {
		h.settle(time.Minute)
		h.wire.disconnect()
		time.AfterFunc(time.Second, func() { _ = h.sys.Kill(PathExternal) })
		if err := h.command("ops", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")); !errors.Is(err, errInterrupted) {
			t.Errorf("the answer is %v", err)
		}
		h.wire.connect()
		h.expect("the layer is not there", "", h.entries)
		h.settle(time.Minute)
	})
}
