package interfaces_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

var errBroken = errors.New("broken")

// world is a whole troupe on a node with two interfaces without a route or an address. Only a
// command can say what they are for. memif0 is up.
type world struct {
	*actorstest.World
	store *probe.Store
}

func play(t *testing.T, play func(w *world)) {
	t.Helper()
	kept := &probe.Store{}
	config := actorstest.Config{Deps: func(d *actors.Deps) { d.Attachments = kept }}
	actorstest.Simulate(t, 1, config, func(w *actorstest.World) {
		for _, name := range []string{"memif0", "memif1"} {
			if _, err := w.VPP.AddInterfaceSpec(simulator.InterfaceSpec{Name: name, Up: name == "memif0"}); err != nil {
				t.Fatal(err)
			}
		}
		w.Settled()
		play(&world{w, kept})
	})
}

// command gives a command and returns its answer.
func (w *world) command(msg any) *command.Result {
	w.Helper()
	return actorstest.Ask[*command.Result](w.World, address.Interfaces, msg)
}

// roles reports whether VPP has given an interface both roles.
func (w *world) roles(name string) bool { return strings.Contains(w.VPP.State(), name+" in out") }

func TestAttachAndDetachAPod(t *testing.T) {
	play(t, func(w *world) {
		if w.roles("memif0") {
			t.Fatal("it has roles though no command has said what it is for")
		}
		attached := w.command(&interfaces.Attach{Pod: "default/new", Interface: "memif0"})
		if attached.Err != nil || !w.roles("memif0") || w.store.Text() != "default/new=memif0" {
			t.Fatalf("%+v, saved %q, VPP:\n%s", attached, w.store.Text(), w.VPP.State())
		}
		// One id has what was asked for, what it changed, and what became of it in VPP.
		want := []string{"attach interface memif0", "8 interfaces;", "1 operations on 0 rows", "done: attach interface memif0"}
		chain := w.Events(&status.EventsQuery{Limit: 100, Cause: attached.Cause})
		for i, e := range chain {
			if i >= len(want) || !strings.HasPrefix(e.GetText(), want[i]) {
				t.Errorf("record %d of %d: %v", i, attached.Cause, e)
			}
		}
		if len(chain) != len(want) || len(chain[len(chain)-1].GetExecuted()) != 2 {
			t.Errorf("%d records, want %d; the last one %v", len(chain), len(want), chain[len(chain)-1])
		}
		w.Settled()
		writes := w.Writes()
		if again := w.command(&interfaces.Attach{Pod: "default/new", Interface: "memif0"}); again.Err != nil || again.Cause <= attached.Cause {
			t.Errorf("the same again: %+v", again)
		}
		w.Kill(address.Interfaces)
		w.Kill(address.Renderer("nat44"))
		w.Settled()
		w.Stop()
		w.Start()
		w.Settled()
		w.Run(time.Minute)
		if n := w.Writes() - writes; n != 0 || !w.roles("memif0") {
			t.Errorf("%d writes by restarts, roles %t", n, w.roles("memif0"))
		}
		detached := w.command(&interfaces.Detach{Pod: "default/new"})
		if detached.Err != nil || w.roles("memif0") || w.store.Text() != "" {
			t.Errorf("%+v, saved %q, VPP:\n%s", detached, w.store.Text(), w.VPP.State())
		}
		if again := w.command(&interfaces.Detach{Pod: "default/new"}); again.Err != nil {
			t.Errorf("detached twice: %+v", again)
		}
		w.Settled()
	})
}

// TestAttachIsAllOrNothing: whatever fails, nothing is saved, nothing is in VPP, and the answer
// says why.
func TestAttachIsAllOrNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		iface, text string
		harm        func(w *world)
		means       error
	}{
		"no such interface": {iface: "memif9", text: "VPP has no such interface", means: command.ErrState},
		"it is down":        {iface: "memif1", text: "it is down in VPP", means: command.ErrState},
		"VPP refuses":       {iface: "memif0", text: "VPP refused the roles", harm: func(w *world) { w.Stream.Refuse = 1000 }},
		"the disk is full":  {iface: "memif0", text: errBroken.Error(), harm: func(w *world) { w.store.Broken = errBroken }},
		"no VPP": {iface: "memif0", text: "no connection to VPP", means: command.ErrAway, harm: func(w *world) {
			w.Stream.Disconnect("gone")
			w.Run(time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				if r := w.command(&interfaces.Attach{Pod: "default/other", Interface: "uplink0"}); r.Err != nil {
					t.Fatalf("another pod: %v", r.Err)
				}
				if tt.harm != nil {
					tt.harm(w)
				}
				result := w.command(&interfaces.Attach{Pod: "default/new", Interface: tt.iface})
				w.Stream.Refuse, w.store.Broken = 0, nil
				w.Stream.Connect()
				if result.Err == nil || !strings.Contains(result.Err.Error(), tt.text) || !errors.Is(command.Meaning(result.Err), tt.means) {
					t.Errorf("answer %v, which means %v; want %q, %v", result.Err, command.Meaning(result.Err), tt.text, tt.means)
				}
				w.Ready()
				w.Await("nothing is left", func() bool { return !w.roles(tt.iface) && w.store.Text() == "default/other=uplink0" })
				w.Await("it is recorded", func() bool {
					all := w.Events(&status.EventsQuery{Limit: 10, Cause: result.Cause, Kind: "command"})
					last := all[len(all)-1]
					return len(all) == 2 && last.GetError() != "" && len(last.GetOperations()) == 2
				})
			})
		})
	}
}

// forgetAfter is how long a pod and its interface have to be gone, see attachments.
const forgetAfter = 10 * time.Minute

// TestAttachmentsAreForgotten: a record that no command takes back goes when neither the pod nor
// its interface exists any more, and not before.
func TestAttachmentsAreForgotten(t *testing.T) {
	play(t, func(w *world) {
		if err := w.VPP.SetInterface("memif1", true); err != nil {
			t.Fatal(err)
		}
		for pod, name := range map[string]string{"ns/leaves": "memif0", "ns/stays": "memif1"} {
			if r := w.command(&interfaces.Attach{Pod: pod, Interface: name}); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		const both = "ns/leaves=memif0 ns/stays=memif1"
		if w.Run(2 * forgetAfter); w.store.Text() != both {
			t.Fatalf("the interfaces exist: saved %q", w.store.Text())
		}
		if err := w.VPP.DeleteInterface("memif0"); err != nil {
			t.Fatal(err)
		}
		if w.Run(forgetAfter / 2); w.store.Text() != both {
			t.Errorf("too early: saved %q", w.store.Text())
		}
		if w.Run(forgetAfter); w.store.Text() != "ns/stays=memif1" {
			t.Errorf("in the end: saved %q", w.store.Text())
		}
		w.Settled()
		saves := w.store.Saves
		if w.Run(3 * forgetAfter); w.store.Saves != saves {
			t.Errorf("saved %d times more", w.store.Saves-saves)
		}
	})
}
