package external_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/render"
	rows "github.com/troupe-vpp/troupe/actors/render/nat44"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// TestExternalLayers: the layer with the highest priority is in VPP; when it goes, the one below
// is, without a write where both want the same.
func TestExternalLayers(t *testing.T) {
	s := newSources("file", "etcd:")
	s.say(update("file", "file", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")))
	s.say(update("etcd:", "etcd:all", mapped("203.0.113.1:80/TCP", "10.1.1.3:80")))
	withExternal(t, s, func(w *world) {
		w.expect("etcd ranks above the file", "203.0.113.1:80/TCP>10.1.1.3", w.rows)
		if err := w.command("ops", mapped("203.0.113.1:80/TCP", "10.1.1.4:80")+`, "identityMappings": ["192.168.16.1:4789/UDP", "192.168.16.7"]`); err != nil {
			t.Fatal(err)
		}
		w.expect("the answer came when it was in VPP", "192.168.16.1:4789/UDP>192.168.16.1 192.168.16.7:0/0>192.168.16.7 203.0.113.1:80/TCP>10.1.1.4", w.rows)
		w.expect("entries", `192.168.16.1:4789/UDP ops in-sync
192.168.16.7 ops in-sync
203.0.113.1:80/TCP ops in-sync
203.0.113.1:80/TCP etcd:all shadowed ops
203.0.113.1:80/TCP file shadowed ops`, w.entries)
		if err := w.command("ops", ""); err != nil || w.rows() != "203.0.113.1:80/TCP>10.1.1.3" {
			t.Errorf("after ops has gone VPP holds %s: %v", w.rows(), err)
		}
		s.say(update("etcd:", "etcd:all", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")))
		w.expect("another document of etcd", "203.0.113.1:80/TCP>10.1.1.2", w.rows)
		writes := w.Writes()
		s.say(update("etcd:"))
		w.expect("owner", "203.0.113.1:80/TCP file in-sync", w.entries)
		if after := w.Writes(); after != writes {
			t.Errorf("%d writes although the layer below wants the same", after-writes)
		}
		s.say(update("file"))
		w.expect("nothing is left", "", w.rows)
		if err := w.command("unknown", ""); err != nil {
			t.Errorf("an unknown source is an empty layer: %v", err)
		}
		w.Settled()
		w.Rests(3 * time.Minute)
	})
}

// TestExternalAndServices: services win whenever they come, and the entry that loses names the
// owner.
func TestExternalAndServices(t *testing.T) {
	withExternal(t, newSources(), func(w *world) {
		w.Source.Serve("web", "10.96.0.1", "10.1.1.2")
		w.Settled()
		writes := w.Writes()
		err := w.command("ops", `"staticMappings": [{"external": "10.96.0.1:80/TCP", "to": ["10.1.1.5:80"]}, {"external": "203.0.113.1:80/TCP", "to": ["10.1.1.5:80"]}]`)
		if !errors.Is(err, command.ErrState) || !strings.Contains(err.Error(), "10.96.0.1:80/TCP: is in use by default/web") {
			t.Errorf("the answer is %v", err)
		}
		if w.rows() != "" || w.entries() != "" {
			t.Errorf("left in VPP is %s, of the layer %s", w.rows(), w.entries())
		}
		if after := w.Writes(); after-writes > 2 {
			t.Errorf("%d writes: at most the other row comes and goes", after-writes)
		}
		if err := w.command("ops", mapped("10.96.0.9:80/TCP", "10.1.1.5:80")); err != nil {
			t.Fatal(err)
		}
		w.Source.Serve("late", "10.96.0.9", "10.1.1.3")
		w.expect("the service takes it over", "10.96.0.9:80/TCP ops refused default/late", w.entries)
		w.Settled()
		w.Source.Change(func(s *kube.Store) { s.Delete("Service", "default/late") })
		w.expect("and gives it back", "10.96.0.9:80/TCP>10.1.1.5", w.rows)
		w.expect("in sync again", "10.96.0.9:80/TCP ops in-sync", w.entries)
	})
}

// TestExternalCommandsChangeAllOrNothing: whatever is wrong with one entry, nothing of the document
// stays, and what was there before is there again.
func TestExternalCommandsChangeAllOrNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		before   func(w *world, s *sources)
		document string
		want     string
	}{
		"an invalid entry":     {nil, mapped("203.0.113.2:80/TCP", "x"), `staticMappings[0] 203.0.113.2:80/TCP: to[0]: "x" is not an IPv4 address`},
		"an unknown interface": {nil, mapped("203.0.113.2:80/TCP", "10.1.1.5:80") + `, "interfaces": [{"name": "none7", "role": "output"}]`, "interface none7: VPP has no interface of this name"},
		"a needed interface":   {func(w *world, _ *sources) { w.Source.Serve("w", "10.96.0.1", "10.1.1.2"); w.Settled() }, `"interfaces": [{"name": "pod2", "role": "none"}]`, "interface pod2: services need it"},
		"a contradiction":      {nil, mapped("203.0.113.2", "10.1.7.7"), "10.1.7.7 is translated by 10.1.7.7 of top"},
		"a row of another client": {func(w *world, _ *sources) {
			w.occupy("203.0.113.2:80")
			w.Run(2 * time.Minute) // the next drift check
		}, mapped("203.0.113.2:80/TCP", "10.1.1.5:80"), `is in use by VPP: load-balancing mapping "theirs"`},
		"VPP refuses":        {func(w *world, _ *sources) { w.Stream.Refuse = 1000 }, mapped("203.0.113.2", "10.1.1.5"), "203.0.113.2: add static mapping 203.0.113.2 -> 10.1.1.5"},
		"it cannot be saved": {func(_ *world, s *sources) { s.broken = errBroken }, mapped("203.0.113.2:80/TCP", "10.1.1.5:80"), "save ops: broken"},
		"VPP is not there":   {func(w *world, _ *sources) { w.Stream.Disconnect("gone") }, mapped("203.0.113.2:80/TCP", "10.1.1.5:80"), "not done in time: bring ops into VPP"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSources()
			withExternal(t, s, func(w *world) {
				w.Settled()
				for source, document := range map[string]string{"ops": mapped("203.0.113.1:80/TCP", "10.1.1.4:80"), "top": `"priority": 900, "identityMappings": ["10.1.7.7"]`} {
					if err := w.command(source, document); err != nil {
						t.Fatal(err)
					}
				}
				if tt.before != nil {
					tt.before(w, s)
				}
				saved := string(s.saved["ops"])
				if err := w.command("ops", tt.document); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("the answer is %v, want one with %q", err, tt.want)
				}
				w.Stream.Refuse, s.broken = 0, nil
				w.Run(external.Deadline)
				w.Stream.Connect()
				w.expect("VPP", "10.1.7.7:0/0>10.1.7.7 203.0.113.1:80/TCP>10.1.1.4", w.rows)
				w.expect("entries", "10.1.7.7 top in-sync\n203.0.113.1:80/TCP ops in-sync", w.entries)
				if string(s.saved["ops"]) != saved {
					t.Errorf("saved is %s", s.saved["ops"])
				}
			})
		})
	}
}

// TestExternalContradictionIsNeverSent: a layer that contradicts another one is refused before the
// renderer gets any of its entries. So VPP never serves them, and no NAT address of another client
// is taken for an address of the agent.
func TestExternalContradictionIsNeverSent(t *testing.T) {
	withExternal(t, newSources(), func(w *world) {
		w.Settled()
		if err := w.command("top", `"priority": 900, "identityMappings": ["10.1.7.7"]`); err != nil {
			t.Fatal(err)
		}
		w.Settled()
		writes := w.Writes()
		err := w.command("ops", `"natAddresses": ["203.0.113.9"], "staticMappings": [
			{"external": "203.0.113.2", "to": ["10.1.7.7"]}, {"external": "203.0.113.1:80/TCP", "to": ["10.1.1.5:80"]}]`)
		if !errors.Is(err, command.ErrState) {
			t.Errorf("the answer is %v", err)
		}
		w.Run(external.Deadline)
		if after := w.Writes(); after != writes {
			t.Errorf("a refused command cost %d writes", after-writes)
		}
		w.expect("entries", "10.1.7.7 top in-sync", w.entries)
	})
}

// TestExternalFamiliesAreApart: a layer of the control socket whose name begins with "file" does
// not belong to the file.
func TestExternalFamiliesAreApart(t *testing.T) {
	s := newSources("file")
	s.say(update("file"))
	withExternal(t, s, func(w *world) {
		w.Settled()
		if err := w.command("fileserver", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")); err != nil {
			t.Fatal(err)
		}
		s.say(update("file", "file", mapped("203.0.113.2:80/TCP", "10.1.1.3:80")))
		w.expect("the file is taken", "203.0.113.1:80/TCP fileserver in-sync\n203.0.113.2:80/TCP file in-sync", w.entries)
		s.say(update("file"))
		w.expect("the file is gone", "203.0.113.1:80/TCP fileserver in-sync", w.entries)
		if s.saved["fileserver"] == nil {
			t.Error("the layer is not saved any more")
		}
	})
}

// TestExternalSettingsGoThoughTheActorFails: VPP does not say whose an address is, so the renderer
// as well as the actor knows what has to go.
func TestExternalSettingsGoThoughTheActorFails(t *testing.T) {
	s := newSources("file")
	s.say(update("file", "file", `"natAddresses": ["203.0.113.9"], "interfaces": [{"name": "uplink0", "role": "output"}]`))
	withExternal(t, s, func(w *world) {
		settings := func() string {
			state := w.read()
			return fmt.Sprint(state.Pool, len(state.Output))
		}
		w.expect("the file is in VPP", "[203.0.113.9] 1", settings)
		w.Stream.Disconnect("gone")
		s.say(update("file"))
		w.Run(time.Second)
		if err := w.System.Kill(address.External); err != nil {
			t.Fatal(err)
		}
		w.Run(time.Second)
		w.Stream.Connect()
		w.expect("nothing is left", "[] 0", settings)
	})
}

// TestExternalSettings: NAT addresses and roles come and go with their layers, and services are
// served meanwhile.
func TestExternalSettings(t *testing.T) {
	withExternal(t, newSources(), func(w *world) {
		w.Source.Serve("web", "10.96.0.1", "10.1.1.2")
		w.Settled()
		if err := w.command("ops", `"natAddresses": ["203.0.113.9"], "interfaces": [{"name": "uplink0", "role": "output"}, {"name": "pod4", "role": "nat"}]`); err != nil {
			t.Fatal(err)
		}
		vpp := w.VPP.State()
		for _, want := range []string{"203.0.113.9", "pod4 in out"} {
			if !strings.Contains(vpp, want) {
				t.Errorf("VPP lacks %q:\n%s", want, vpp)
			}
		}
		state := w.read()
		uplink := w.VPP.Interfaces()["uplink0"]
		if !state.Output[uplink] || state.Roles[uplink] != 0 {
			t.Errorf("uplink0 is no output interface: %+v", state)
		}
		w.Settled()
		w.Rests(3 * time.Minute)
		w.failuresCostNothing(address.External, address.Renderer("nat44"), address.External)
		if err := w.command("ops", ""); err != nil {
			t.Fatal(err)
		}
		if state = w.read(); len(state.Output)+len(state.Pool) != 0 || state.Roles[uplink] != nat44.Both {
			t.Errorf("left is %+v", state)
		}
		w.Settled()
	})
}

// TestExternalGoodStays: what cannot be read or understood leaves the last good layer, with a
// warning that does not make the node unready.
func TestExternalGoodStays(t *testing.T) {
	s := newSources("file", "etcd:")
	s.say(update("file", "file", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")))
	s.say(update("etcd:"))
	withExternal(t, s, func(w *world) {
		w.expect("the file", "203.0.113.1:80/TCP>10.1.1.2", w.rows)
		for want, bad := range map[string]external.Update{
			`file: invalid external configuration: staticMappings[0] x`: update("file", "file", mapped("x", "y")),
			"file: not YAML":          {Family: "file", Unreadable: map[string]error{"file": errors.New("not YAML")}},
			"file: permission denied": {Family: "file", Err: errors.New("permission denied")},
			"etcd: timed out":         {Family: "etcd:", Err: errors.New("timed out")},
		} {
			s.say(update("file", "file", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")))
			s.say(update("etcd:"))
			s.say(bad)
			w.Run(5 * time.Second)
			if part, ready := w.part(); !ready || !part.OK || !strings.HasPrefix(part.Reason, want) {
				t.Errorf("ready %t, %+v, want a warning %q", ready, part, want)
			}
			w.expect("the last good one", "203.0.113.1:80/TCP>10.1.1.2", w.rows)
		}
		s.fails = true
		w.Run(time.Second)
		s.say(update("file", "file", mapped("203.0.113.1:80/TCP", "10.1.1.3:80")))
		w.expect("a source that was started again", "203.0.113.1:80/TCP>10.1.1.3", w.rows)
		w.Settled()
	})
}

// TestExternalCommandsEndWithTheActor: a command that is under way when the actor fails is
// answered, too.
func TestExternalCommandsEndWithTheActor(t *testing.T) {
	withExternal(t, newSources(), func(w *world) {
		w.Settled()
		w.Stream.Disconnect("gone")
		w.Sim.AfterFunc(time.Second, func() { _ = w.System.Kill(address.External) })
		if err := w.command("ops", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")); !errors.Is(command.Meaning(err), command.ErrAway) {
			t.Errorf("the answer is %v", err)
		}
		w.Stream.Connect()
		w.expect("the layer is not there", "", w.entries)
		w.Settled()
	})
}

// TestExternalLeftoversWait: what an earlier run has left of external configuration stays until
// every source has been read, and goes then; the renderer is ready meanwhile.
func TestExternalLeftoversWait(t *testing.T) {
	layer, err := layers.Decode(document(mapped("203.0.113.1:80/TCP", "10.1.1.2:80")), "file")
	if err != nil {
		t.Fatal(err)
	}
	s := probe.New(t)
	stream := s.VPP()
	merged, config := layers.Merge([]*layers.Layer{layer}), nat44.Config{Node: "n1", Pads: true}
	if _, err := stream.VPP.Exec(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true}); err != nil {
		t.Fatal(err)
	}
	for _, row := range merged.Rows(config)["file"] {
		for _, request := range nat44.Messages(nat44.Op{Verb: nat44.AddRow, Key: row.Key, Row: &row}) {
			if _, err := stream.VPP.Exec(request); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := address.Renderer("nat44")
	driver := &render.Config{VPP: stream, Observer: report.None{}, Tick: 900 * time.Millisecond, Backoff: time.Second, DriftCheckLeast: time.Hour, DriftCheckMost: time.Hour, DriftCheckOverdue: time.Minute}
	s.Start(path, probe.Actors{path: func() runtime.Behaviour { return render.New(driver, rows.New(config)) }})
	s.Tell(
		&messages.LinkState{Up: true, Boot: stream.Boot(), Session: 1}, &messages.InterfaceSet{Generation: 1, Complete: true, Boot: stream.Boot()},
		&messages.Begin{Generation: 1, Node: &messages.NodeContext{Node: &messages.Node{Name: "n1", PodCidrs: []string{"10.1.1.0/24"}}}},
	)
	s.Run(5 * time.Second)
	held := func() string { return strings.Join(stream.VPP.Rows(), " ") }
	if h := probe.Latest[*messages.Health](s, address.Healer); !h.GetOk() || !strings.Contains(held(), "203.0.113.1:80") {
		t.Fatalf("VPP holds %q, %v", held(), h)
	}
	writes := stream.Writes
	s.Tell(&external.Wants{Generation: 1, Merged: merged})
	s.Run(5 * time.Second)
	s.Tell(&external.Wants{Generation: 2, Merged: merged, Complete: true})
	s.Run(5 * time.Second)
	status := probe.Latest[*external.Status](s, address.External)
	if stream.Writes != writes || status.Generation != 2 || !status.Settled || status.Entries["203.0.113.1:80/TCP"].State != external.InSync {
		t.Errorf("%d writes, %+v", stream.Writes-writes, status)
	}
	s.Tell(&external.Wants{Generation: 1, Merged: layers.Merge(nil)}) // it comes late
	if s.Run(time.Second); !strings.Contains(held(), "203.0.113.1:80") {
		t.Errorf("VPP holds %q", held())
	}
	s.Tell(&external.Wants{Generation: 3, Merged: layers.Merge(nil), Complete: true})
	s.Run(time.Second)
	if strings.Contains(held(), "203.0.113.1:80") || !probe.Latest[*external.Status](s, address.External).Settled {
		t.Errorf("VPP holds %q", held())
	}
}
