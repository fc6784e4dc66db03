package interfaces

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// shelf is an AttachmentStore that can be broken.
type shelf struct {
	mu     sync.Mutex
	told   *messages.Attachments
	broken error
	saves  int
}

func (s *shelf) Load() (*messages.Attachments, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told, s.broken
}

func (s *shelf) Save(told *messages.Attachments) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saves++; s.broken != nil {
		return s.broken
	}
	s.told = told
	return nil
}

func (s *shelf) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, a := range s.told.GetItems() {
		all = append(all, a.GetPod()+"="+a.GetInterface())
	}
	return strings.Join(all, " ")
}

func (s *shelf) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

// command gives a command to the interfaces actor and waits for its answer.
func (w *world) command(msg any) *CommandResult {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := w.system.Ask(ctx, PathInterfaces, msg)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.(*CommandResult)
}

// roles reports whether VPP has given an interface both roles.
func (w *world) roles(name string) bool { return strings.Contains(w.vpp.State(), name+" in out") }

// bare is a node with an interface that nothing leads to: no route, no address. Only whoever made it knows that it is for a pod.
func bare(t *testing.T) (*world, *shelf) {
	t.Helper()
	w, store := newWorld(t), &shelf{}
	w.attachments = store
	for _, name := range []string{"memif0", "memif1"} {
		if _, err := w.vpp.AddInterfaceSpec(simulator.InterfaceSpec{Name: name, Up: name == "memif0"}); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.settled()
	return w, store
}

// TestAttachedPodsAreForgotten: a record that nobody takes back goes when neither the pod nor its interface exists any more, and not before; an
// interface of the same name that comes later is nobody's.
func TestAttachedPodsAreForgotten(t *testing.T) {
	store := &shelf{}
	inHouse(t, 1, func(h *house, _ *runtime.Options) { h.deps.Attachments = store }, func(h *house) {
		h.settle(time.Minute)
		attach := func(pod, name string) {
			t.Helper()
			if _, err := h.wire.vpp.AddInterfaceSpec(simulator.InterfaceSpec{Name: name, Up: true}); err != nil {
				t.Fatal(err)
			}
			answer, err := h.sys.Ask(context.Background(), PathInterfaces, &AttachPod{Pod: pod, Interface: name})
			if err != nil || answer.(*CommandResult).Err != nil {
				t.Fatal(answer, err)
			}
		}
		attach("ns/leaves", "memif0")
		attach("ns/stays", "memif1")
		const both = "ns/leaves=memif0 ns/stays=memif1"
		if h.run(2 * forgetAfter); store.text() != both {
			t.Fatalf("the interfaces exist: told %q", store.text())
		}
		if err := h.wire.vpp.DeleteInterface("memif0"); err != nil {
			t.Fatal(err)
		}
		if h.run(forgetAfter / 2); store.text() != both {
			t.Errorf("too early: told %q", store.text())
		}
		if h.run(forgetAfter); store.text() != "ns/stays=memif1" {
			t.Errorf("in the end: told %q", store.text())
		}
		h.settle(time.Minute)
		h.quiet()
		saves := store.saves
		if h.run(3 * forgetAfter); store.saves != saves {
			t.Errorf("saved %d times more", store.saves-saves)
		}
	})
}

func TestAttachAndDetachAPod(t *testing.T) {
	w, store := bare(t)
	w.quiet()
	if w.roles("memif0") {
		t.Fatal("it has roles though nobody has told what it is for")
	}
	attached := w.command(&AttachPod{Pod: "default/new", Interface: "memif0"})
	if attached.Err != nil || !w.roles("memif0") || store.text() != "default/new=memif0" {
		t.Fatalf("%+v, told %q, VPP:\n%s", attached, store.text(), w.vpp.State())
	}
	// One id has what was asked for, what it changed, and what became of it in VPP.
	want := []string{"attach interface memif0", "8 interfaces;", "1 operations on 0 rows", "done: attach interface memif0"}
	chain := w.events(&EventsQuery{Limit: 100, Cause: attached.Cause})
	for i, e := range chain {
		if i >= len(want) || !strings.HasPrefix(e.GetText(), want[i]) {
			t.Errorf("record %d of %d: %v", i, attached.Cause, e)
		}
	}
	if len(chain) != len(want) || len(chain[3].GetExecuted()) != 2 {
		t.Errorf("%d records, want %d; the last one %v", len(chain), len(want), chain[len(chain)-1])
	}
	w.settled()
	w.undisturbed(func() {
		if again := w.command(&AttachPod{Pod: "default/new", Interface: "memif0"}); again.Err != nil || again.Cause <= attached.Cause {
			t.Errorf("the same again: %+v", again)
		}
		w.kill(PathInterfaces)
		w.kill(PathRenderer(nat))
		w.stop()
		w.start()
		w.settled()
	})
	if !w.roles("memif0") {
		t.Error("a restart took the roles")
	}
	detached := w.command(&DetachPod{Pod: "default/new"})
	if detached.Err != nil || w.roles("memif0") || store.text() != "" {
		t.Errorf("%+v, told %q, VPP:\n%s", detached, store.text(), w.vpp.State())
	}
	if again := w.command(&DetachPod{Pod: "default/new"}); again.Err != nil {
		t.Errorf("detached twice: %+v", again)
	}
	w.settled()
}

// TestAttachIsAllOrNothing: whatever fails, nothing is told, nothing is in VPP, and the answer says why.
func TestAttachIsAllOrNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		pod, iface string
		harm       func(w *world, s *shelf) (mend func())
		err        error
		means      error
	}{
		"no such interface": {iface: "memif9", err: errNoInterface, means: ErrState},
		"it is down":        {iface: "memif1", err: errInterfaceDown, means: ErrState},
		"VPP refuses": {iface: "memif0", err: errRolesRefused, harm: func(w *world, _ *shelf) func() {
			return w.vpp.Inject(simulator.Fault{Message: "nat44_interface_add_del_feature", Retval: -1})
		}},
		"the disk is full": {iface: "memif0", err: errBroken, harm: func(_ *world, s *shelf) func() {
			s.breaks(errBroken)
			return func() { s.breaks(nil) }
		}},
		"no VPP": {iface: "memif0", err: errNotConnected, means: ErrAway, harm: func(w *world, _ *shelf) func() {
			w.vpp.Hang()
			w.vpp.DisconnectClients()
			w.until("it is noticed", func() bool { return !w.readiness.Load().Ready })
			return w.vpp.Resume
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, store := bare(t)
			if r := w.command(&AttachPod{Pod: "default/other", Interface: "uplink0"}); r.Err != nil {
				t.Fatalf("another pod: %v", r.Err)
			}
			mend := func() {}
			if tt.harm != nil {
				mend = tt.harm(w, store)
			}
			result := w.command(&AttachPod{Pod: "default/new", Interface: tt.iface})
			mend()
			broke := tt.err == errNotConnected && errors.Is(result.Err, link.ErrDown) // it was not noticed before, but by the command
			if !errors.Is(result.Err, tt.err) && !broke || !errors.Is(Meaning(result.Err), tt.means) {
				t.Errorf("answer %v, which means %v; want %v, %v", result.Err, Meaning(result.Err), tt.err, tt.means)
			}
			w.until("ready again", func() bool { return w.readiness.Load().Ready })
			w.until("nothing is left", func() bool { return !w.roles(tt.iface) && store.text() == "default/other=uplink0" })
			w.until("it is written down", func() bool {
				all := w.events(&EventsQuery{Limit: 10, Cause: result.Cause, Kind: "command"})
				last := all[len(all)-1]
				return len(all) == 2 && last.GetError() != "" && len(last.GetOperations()) == 2
			})
		})
	}
}

// TestAttachEndsByItsDeadline: VPP does not answer; the command does, and what it has told is taken back.
func TestAttachEndsByItsDeadline(t *testing.T) {
	perform(t, PathInterfaces, nil, func(s *stage) {
		store := &shelf{}
		s.deps.Attachments = store
		s.kill()
		s.connected()
		s.tell(&messages.NodeChanged{Input: testNodeInput(1)}, &messages.LocalEndpoints{Generation: 1})
		s.tell(&AttachPod{Pod: "default/p2", Interface: "pod2"}) // the renderer is an extra: it never says that it has carried anything out
		s.run(s.deps.Timing.Command / 2)
		if store.text() != "default/p2=pod2" {
			t.Errorf("told %q", store.text())
		}
		s.run(2 * s.deps.Timing.Command)
		if store.text() != "" {
			t.Errorf("told %q after the deadline", store.text())
		}
		var last *messages.Event
		for _, e := range all[*messages.Event](s, PathJournal) {
			if e.GetKind() == "command" {
				last = e
			}
		}
		if !strings.Contains(last.GetError(), errTooLate.Error()) || !strings.Contains(last.GetError(), errNotReverted.Error()) {
			t.Errorf("written down: %v", last)
		}
		if n := len(all[*messages.Verify](s, PathRenderer(nat))); n != 1 {
			t.Errorf("%d readings of VPP ordered for what could not be taken back, want 1", n)
		}
	})
}

// TestDetachedInterfacesAreForgotten: what was taken from an interface says nothing of another one that gets its name.
func TestDetachedInterfacesAreForgotten(t *testing.T) {
	perform(t, PathInterfaces, nil, func(s *stage) {
		s.connected()
		s.tell(&messages.NodeChanged{Input: testNodeInput(1)}, &messages.LocalEndpoints{Generation: 1})
		detached := func() bool {
			for _, i := range latest[*messages.InterfaceSet](s, PathRenderer(nat)).GetInterfaces() {
				if i.GetName() == "memif0" {
					return i.GetDetached()
				}
			}
			return false
		}
		add := func() {
			if _, err := s.wire.vpp.AddInterfaceSpec(simulator.InterfaceSpec{Name: "memif0"}); err != nil {
				t.Fatal(err)
			}
		}
		add()
		s.tell(&AttachPod{Pod: "default/p9", Interface: "memif0"}) // it is down, so this fails
		if s.run(3 * s.deps.Timing.Command); !detached() {
			t.Fatal("it is not detached")
		}
		if err := s.wire.vpp.DeleteInterface("memif0"); err != nil {
			t.Fatal(err)
		}
		s.run(3 * s.deps.Timing.Rediscover)
		add()
		if s.run(3 * s.deps.Timing.Rediscover); detached() {
			t.Error("another interface of the same name is detached")
		}
	})
}

// TestMeaning: whoever asked is told what kind of error it is.
func TestMeaning(t *testing.T) {
	for _, tt := range []struct{ err, means error }{
		{nil, nil},
		{errBroken, nil},
		{errors.Join(errNoInterface, errNotReverted), ErrState},
		{errTooLate, ErrTooLate},
		{errInterrupted, ErrAway},
		{link.ErrDown, ErrAway},
		{errors.Join(link.ErrDown, errNotReverted), ErrAway},
	} {
		if got := Meaning(tt.err); !errors.Is(got, tt.means) {
			t.Errorf("%v means %v, want %v", tt.err, got, tt.means)
		}
	}
}
