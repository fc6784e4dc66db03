package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/messages"
)

// scripted is a real source whose deliveries the test decides.
type scripted struct {
	say       chan func(kube.Sink)
	end       chan error
	refreshed int
}

func newScripted() *scripted {
	return &scripted{say: make(chan func(kube.Sink)), end: make(chan error, 1)}
}

// Run satisfies kube.Source.
func (s *scripted) Run(ctx context.Context, sink kube.Sink) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.end:
			return err
		case say := <-s.say:
			say(sink)
		}
	}
}

// Refresh satisfies kube.Source.
func (s *scripted) Refresh() { s.refreshed++ }

// receiver is a sink that handles deliveries like the actors: newer generations win, and only a
// complete list removes services.
type receiver struct {
	mu       sync.Mutex
	services map[string]*messages.ServiceInput
	node     *messages.NodeInput
	complete bool
	lists    int
	ok       bool
	reason   string
	healths  int
	broken   []string
	asOf     time.Time
}

// ServiceChanged satisfies kube.Sink.
func (r *receiver) ServiceChanged(in *messages.ServiceInput) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take(in)
}

func (r *receiver) take(in *messages.ServiceInput) {
	old := r.services[in.GetKey()]
	switch {
	case old != nil && in.GetGeneration() < old.GetGeneration():
		r.broken = append(r.broken, fmt.Sprintf("%s: generation %d after %d", in.GetKey(), in.GetGeneration(), old.GetGeneration()))
	case in.GetService() == nil:
		delete(r.services, in.GetKey())
	default:
		r.services[in.GetKey()] = in
	}
}

// NodeChanged satisfies kube.Sink.
func (r *receiver) NodeChanged(in *messages.NodeInput) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node = in
}

// Snapshot satisfies kube.Sink.
func (r *receiver) Snapshot(m *messages.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.complete && !m.GetComplete() {
		r.broken = append(r.broken, "an earlier run after the source")
	}
	shown := map[string]bool{}
	for _, in := range m.GetServices() {
		shown[in.GetKey()] = true
		r.take(in)
	}
	if m.GetComplete() {
		maps.DeleteFunc(r.services, func(key string, _ *messages.ServiceInput) bool { return !shown[key] })
	}
	r.node, r.complete, r.lists = m.GetNode(), r.complete || m.GetComplete(), r.lists+1
}

// Health satisfies kube.Sink.
func (r *receiver) Health(h kube.Health) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.healths > 0 && r.ok == h.OK && r.reason == h.Reason {
		r.broken = append(r.broken, "the same health twice: "+h.Reason)
	}
	r.ok, r.reason, r.asOf, r.healths = h.OK, h.Reason, h.AsOf, r.healths+1
}

// counts is an Observer.
type counts struct {
	mu      sync.Mutex
	serving bool
	saved   int
	refused map[string]int
}

// MirrorServing satisfies Observer.
func (c *counts) MirrorServing(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving = on
}

// MirrorSaved satisfies Observer.
func (c *counts) MirrorSaved(time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saved++
}

// MirrorNotSaved satisfies Observer.
func (c *counts) MirrorNotSaved(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[why]++
}

// run is one run of a Source in virtual time.
type run struct {
	*testing.T
	disk   *durable.Memory
	inner  *scripted
	sink   *receiver
	counts *counts
	cfg    Config
	cancel context.CancelFunc
	done   chan error
	source *Source
}

// release orders the reads of this test before later calls of the source's timers, for the race
// detector. Virtual time alone does not.
func (p *run) release() {
	p.source.mu.Lock()
	defer p.source.mu.Unlock()
}

// withSource runs a Source on a disk for a test, then stops it.
func withSource(t *testing.T, disk *durable.Memory, test func(p *run)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := &run{
			T: t, disk: disk, inner: newScripted(), sink: &receiver{services: map[string]*messages.ServiceInput{}},
			counts: &counts{refused: map[string]int{}}, cancel: cancel, done: make(chan error, 1),
		}
		p.cfg = Config{Node: "n1", Origin: "kubernetes", Observer: p.counts}
		s := New(p.inner, NewStore("d", disk), p.cfg, quiet())
		p.source = s
		go func() { p.done <- s.Run(ctx, p.sink) }()
		synctest.Wait()
		test(p)
		p.release()
		cancel()
		synctest.Wait()
		select {
		case err := <-p.done:
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
		default:
			t.Error("it goes on")
		}
		for _, rule := range p.sink.broken {
			t.Errorf("the sink got a wrong delivery: %s", rule)
		}
	})
}

// says makes the real source call its sink.
func (p *run) says(what func(kube.Sink)) {
	p.Helper()
	p.inner.say <- what
	synctest.Wait()
}

func (p *run) delivers(m *messages.Snapshot) {
	p.Helper()
	p.says(func(s kube.Sink) { s.Snapshot(m) })
}

func (p *run) passes(d time.Duration) {
	p.release()
	time.Sleep(d)
	synctest.Wait()
}

// knows compares the services of the receiver.
func (p *run) knows(complete bool, services ...string) {
	p.Helper()
	if got := slices.Sorted(maps.Keys(p.sink.services)); !slices.Equal(got, services) || p.sink.complete != complete {
		p.Errorf("known are %v, complete %t; want %v, %t", got, p.sink.complete, services, complete)
	}
}

// health compares the last health: its reason must contain the text; "" = no reason.
func (p *run) health(ok bool, reason string) {
	p.Helper()
	said := strings.Contains(p.sink.reason, reason) && (reason != "" || p.sink.reason == "")
	if p.sink.ok != ok || !said {
		p.Errorf("health %t %q; want %t %q", p.sink.ok, p.sink.reason, ok, reason)
	}
}

// holds compares the content of the disk.
func (p *run) holds(services ...string) *messages.Mirror {
	p.Helper()
	m, err := NewStore("d", p.disk).Snapshot()
	if err != nil && !errors.Is(err, ErrNone) {
		p.Fatal(err)
	}
	var got []string
	for _, in := range m.GetSnapshot().GetServices() {
		got = append(got, in.GetKey())
	}
	if !slices.Equal(got, services) {
		p.Errorf("the disk holds %v, want %v", got, services)
	}
	return m
}

// saved is a disk with the mirror of an earlier run of cluster a.
func saved(t *testing.T, services ...*messages.ServiceInput) *durable.Memory {
	t.Helper()
	disk := durable.NewMemory()
	m := &messages.Mirror{Revision: 5, Saved: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano(), Node: "n1", Source: "kubernetes"}
	m.Snapshot = cluster("a", services...)
	if err := NewStore("d", disk).SaveSnapshot(m); err != nil {
		t.Fatal(err)
	}
	return disk
}

func TestTheMirrorServesWhenTheSourceIsLate(t *testing.T) {
	withSource(t, saved(t, service("api", 8), service("web", 9)), func(p *run) {
		p.passes(5*time.Second - 1)
		p.knows(false)
		p.passes(1)
		p.knows(false, "shop/api", "shop/web")
		p.health(false, "from the local mirror of 2026-01-02T03:04:05Z: the source has not delivered anything yet")
		if !p.counts.serving {
			p.Error("the mirror does not count as serving")
		}
		want := cluster("a").GetNode()
		want.Generation = 0
		if diff := cmp.Diff(want, p.sink.node, protocmp.Transform()); diff != "" {
			p.Errorf("node (-want +got)\n%s", diff)
		}
		p.passes(time.Hour)
		p.holds("shop/api", "shop/web")
		if p.counts.saved != 0 || p.sink.lists != 1 {
			p.Errorf("%d saves, %d lists", p.counts.saved, p.sink.lists)
		}

		// The source delivers, with generations of its own, without one service and with a new one.
		p.delivers(cluster("a", service("new", 1), service("web", 2)))
		p.knows(true, "shop/new", "shop/web")
		p.health(true, "")
		if p.counts.serving {
			p.Error("the mirror still counts as serving")
		}
		p.passes(2 * time.Second)
		if m := p.holds("shop/new", "shop/web"); m.GetRevision() != 6 {
			p.Errorf("revision %d", m.GetRevision())
		}
	})
}

func TestTheMirrorServesWhenTheSourceSeesNothing(t *testing.T) {
	withSource(t, saved(t, service("web", 9)), func(p *run) {
		p.says(func(s kube.Sink) { s.Health(kube.Health{Reason: "services: connection refused"}) })
		p.knows(false, "shop/web")
		p.health(false, "from the local mirror of 2026-01-02T03:04:05Z: services: connection refused")
		p.says(func(s kube.Sink) { s.Health(kube.Health{Reason: "services: no route"}) })
		p.health(false, "no route")
		// the source is healthy, but it has not listed yet
		p.says(func(s kube.Sink) { s.Health(kube.Health{OK: true}) })
		p.health(false, "has not delivered anything yet")
		p.delivers(cluster("a", service("web", 1)))
		p.health(true, "")
		p.says(func(s kube.Sink) { s.Health(kube.Health{Reason: "gone again"}) })
		p.health(false, "gone again")
		if strings.Contains(p.sink.reason, "mirror") {
			p.Errorf("the mirror comes back: %s", p.sink.reason)
		}
		p.knows(true, "shop/web")
	})
}

// TestRefreshIsAnswered: Refresh is answered also while the mirror serves, because a restarted
// watch has no Snapshot.
func TestRefreshIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, sink := newScripted(), &receiver{services: map[string]*messages.ServiceInput{}}
		s := New(inner, NewStore("d", saved(t, service("web", 9))), Config{Node: "n1", Origin: "kubernetes"}, quiet())
		done := make(chan error)
		go func() { done <- s.Run(t.Context(), sink) }()
		s.Refresh()
		synctest.Wait()
		if sink.lists != 0 {
			t.Error("a list before the grace time")
		}
		(&run{source: s}).release()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for range 3 {
			s.Refresh()
			synctest.Wait()
		}
		if sink.lists != 4 || inner.refreshed != 4 {
			t.Errorf("%d lists, the source was asked %d times", sink.lists, inner.refreshed)
		}
		inner.end <- durable.ErrIO
		if err := <-done; !errors.Is(err, durable.ErrIO) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestASourceInTimeIsPassedOn(t *testing.T) {
	withSource(t, saved(t, service("old", 9)), func(p *run) {
		p.delivers(cluster("a", service("web", 1)))
		p.passes(time.Minute)
		p.knows(true, "shop/web")
		if p.sink.healths != 0 || p.sink.lists != 1 {
			p.Errorf("%d healths, %d lists", p.sink.healths, p.sink.lists)
		}
		p.says(func(s kube.Sink) { s.ServiceChanged(service("web", 2)) })
		p.says(func(s kube.Sink) { s.NodeChanged(&messages.NodeInput{Generation: 3}) })
		p.says(func(s kube.Sink) { s.Health(kube.Health{OK: true, Reason: "f.yaml: a warning"}) })
		p.health(true, "f.yaml: a warning")
		if p.sink.services["shop/web"].GetGeneration() != 2 || p.sink.node.GetGeneration() != 3 {
			p.Errorf("%v, %v", p.sink.services, p.sink.node)
		}
	})
}

// TestChangesAreSaved: changes are saved together, after Delay, not more often, and at the end.
func TestChangesAreSaved(t *testing.T) {
	disk := durable.NewMemory()
	withSource(t, disk, func(p *run) {
		p.delivers(cluster("a", service("web", 1)))
		p.passes(2*time.Second - 1)
		p.holds()
		p.passes(1)
		if m := p.holds("shop/web"); m.GetRevision() != 1 || m.GetNode() != "n1" || m.GetSource() != "kubernetes" {
			p.Errorf("%v", m)
		}
		for generation := range uint64(1000) {
			p.says(func(s kube.Sink) { s.ServiceChanged(service("web", 2+generation)) })
			p.passes(10 * time.Millisecond)
		}
		if p.counts.saved < 5 || p.counts.saved > 7 {
			p.Errorf("%d saves in 12 s", p.counts.saved)
		}
		p.passes(2 * time.Second)
		before := p.counts.saved
		same := cluster("a", p.sink.services["shop/web"])
		p.delivers(same)
		p.passes(10 * time.Second)
		p.delivers(&messages.Snapshot{Services: same.GetServices(), Node: same.GetNode(), Complete: true, Generation: 2000})
		p.passes(10 * time.Second)
		if p.counts.saved != before+1 {
			// the node has a new value; the second list changes nothing
			p.Errorf("%d saves for nothing", p.counts.saved-before)
		}
		p.says(func(s kube.Sink) { s.ServiceChanged(service("late", 3000)) })
	})
	withSource(t, disk, func(p *run) {
		p.holds("shop/late", "shop/web")
		p.passes(5 * time.Second)
		p.knows(false, "shop/late", "shop/web")
	})
}

// TestAnUnchangedStateStaysFresh: an unchanged state is saved again, because its time tells when
// the source confirmed it.
func TestAnUnchangedStateStaysFresh(t *testing.T) {
	withSource(t, durable.NewMemory(), func(p *run) {
		p.delivers(cluster("a", service("web", 1)))
		p.passes(3*time.Hour + time.Minute)
		if p.counts.saved != 4 {
			p.Errorf("%d saves", p.counts.saved)
		}
		p.says(func(s kube.Sink) { s.Health(kube.Health{Reason: "gone"}) })
		p.passes(24 * time.Hour)
		if p.counts.saved != 4 {
			p.Errorf("%d saves; a source that sees nothing confirms nothing", p.counts.saved)
		}
		seen := time.Unix(0, p.holds("shop/web").GetSaved())
		if age := time.Since(seen); age < 24*time.Hour || age > 25*time.Hour {
			p.Errorf("age %s", age)
		}
	})
}

// TestAnEmptySnapshotIsNotBelievedAtOnce: the receiver gets the empty Snapshot. The mirror keeps
// its services until the source has been empty long enough.
func TestAnEmptySnapshotIsNotBelievedAtOnce(t *testing.T) {
	disk := saved(t, service("api", 8), service("web", 9))
	withSource(t, disk, func(p *run) {
		p.delivers(cluster("a"))
		p.knows(true)
		p.passes(3 * time.Second)
		p.holds("shop/api", "shop/web")
		p.health(true, "the source has no service, so none is served; the copy of 2026-01-02T03:04:05Z on disk keeps its 2 services until the source has been empty for 10m0s")
		p.passes(5 * time.Minute)
	})
	withSource(t, disk, func(p *run) { // not at the end either, and the time starts again
		p.delivers(cluster("a"))
		p.passes(9 * time.Minute)
		p.holds("shop/api", "shop/web")
		// nor while the source sees no changes
		p.says(func(s kube.Sink) { s.Health(kube.Health{Reason: "gone"}) })
		p.says(func(s kube.Sink) { s.Health(kube.Health{OK: true}) })
		p.passes(9 * time.Minute)
		p.holds("shop/api", "shop/web")
		p.passes(11 * time.Minute)
		p.holds()
		p.health(true, "")
		if p.counts.refused["empty"] == 0 || p.counts.saved != 1 {
			p.Errorf("%v, %d saves", p.counts.refused, p.counts.saved)
		}
	})
}

func TestAServiceEndsTheEmptiness(t *testing.T) {
	withSource(t, saved(t, service("web", 9)), func(p *run) {
		p.delivers(cluster("a"))
		p.passes(9 * time.Minute)
		p.says(func(s kube.Sink) { s.ServiceChanged(service("new", 5)) })
		p.passes(3 * time.Second)
		p.holds("shop/new")
		p.health(true, "")
	})
}

// TestTheLastServiceOfOneRun: the same rule applies when the last service vanishes during a run.
func TestTheLastServiceOfOneRun(t *testing.T) {
	withSource(t, durable.NewMemory(), func(p *run) {
		p.delivers(cluster("a", service("web", 1)))
		p.passes(3 * time.Second)
		p.says(func(s kube.Sink) { s.ServiceChanged(&messages.ServiceInput{Key: "shop/web", Generation: 2}) })
		p.passes(9 * time.Minute)
		p.holds("shop/web")
		p.passes(2 * time.Minute)
		p.holds()
	})
}

// TestAnotherClusterDoesNotReplaceTheMirror: the old mirror is put aside, and the new cluster gets
// a mirror of its own.
func TestAnotherClusterDoesNotReplaceTheMirror(t *testing.T) {
	disk := saved(t, service("web", 9))
	withSource(t, disk, func(p *run) {
		p.passes(6 * time.Second)
		p.knows(false, "shop/web") // the cluster is not known yet
		p.delivers(cluster("b", service("other", 1)))
		p.knows(true, "shop/other")
		p.passes(3 * time.Second)
		p.health(true, "belonged to another cluster")
		p.health(true, "it is kept as d/snapshot.foreign")
		if m := p.holds("shop/other"); m.GetRevision() != 1 {
			p.Errorf("revision %d", m.GetRevision())
		}
		if p.counts.refused["foreign"] != 1 {
			p.Errorf("%v", p.counts.refused)
		}
	})
	if kept, err := decodeMirror(disk.Content("d/snapshot.foreign")); err != nil || kept.GetRevision() != 5 {
		t.Errorf("%v, %v", kept, err)
	}
}

// TestAnEmptyForeignClusterIsForeign: an empty foreign cluster is not mistaken for this cluster
// without its data.
func TestAnEmptyForeignClusterIsForeign(t *testing.T) {
	disk := saved(t, service("web", 9))
	withSource(t, disk, func(p *run) {
		p.delivers(cluster("b"))
		p.passes(3 * time.Second)
		p.holds()
		p.health(true, "belonged to another cluster")
	})
	if disk.Content("d/snapshot.foreign") == nil {
		t.Error("it is not kept")
	}
}

func TestAMirrorThatCannotBeUsed(t *testing.T) {
	ofNode := func(name string) []byte {
		return encoded(t, kindSnapshot, &messages.Mirror{Revision: 5, Node: name, Source: "kubernetes", Snapshot: cluster("a", service("web", 9))})
	}
	for name, tt := range map[string]struct {
		data []byte
		says string
		file string // final path
	}{
		"damaged":         {[]byte("garbage"), "d/snapshot: the file is damaged: it has only 7 bytes; it is kept as d/snapshot.damaged", "d/snapshot.damaged"},
		"of another node": {ofNode("n2"), `local mirror not used: it belongs to node "n2"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			disk := durable.NewMemory()
			disk.Put("d/snapshot", tt.data)
			withSource(t, disk, func(p *run) {
				p.passes(time.Hour)
				p.knows(false)
				p.says(func(s kube.Sink) { s.Health(kube.Health{Reason: "no answer"}) })
				p.health(false, "no answer; ")
				p.health(false, tt.says)
				p.delivers(cluster("a", service("new", 1)))
				p.says(func(s kube.Sink) { s.Health(kube.Health{OK: true}) })
				p.health(true, tt.says)
				p.passes(3 * time.Second)
				p.holds("shop/new")
			})
			if tt.file != "" && string(disk.Content(tt.file)) != string(tt.data) {
				t.Errorf("%s is not what it was", tt.file)
			}
		})
	}
}

// TestADiskThatFails: a failing disk is reported and stops nothing. The state is saved later.
func TestADiskThatFails(t *testing.T) {
	disk := durable.NewMemory()
	withSource(t, disk, func(p *run) {
		p.delivers(cluster("a", service("web", 1)))
		disk.Stop = disk.Step + 3 // the write
		p.passes(2 * time.Second)
		p.holds()
		p.health(true, "save local mirror d/snapshot: input/output error")
		if p.counts.refused["failed"] != 1 {
			p.Errorf("%v", p.counts.refused)
		}
		p.passes(10 * time.Second)
		p.holds("shop/web")
		p.health(true, "")
	})
	disk = saved(t, service("web", 9))
	disk.Step, disk.Stop = 0, 2 // the first read
	withSource(t, disk, func(p *run) {
		p.passes(time.Minute)
		p.knows(false)
		p.delivers(cluster("a", service("new", 1)))
		p.health(true, "read local mirror d/snapshot: input/output error")
	})
	if _, err := disk.ReadFile("d/snapshot.damaged"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is wrong with it: %v", err)
	}
}

// TestAForeignMirrorThatCannotBePutAsideStays.
func TestAForeignMirrorThatCannotBePutAsideStays(t *testing.T) {
	disk := saved(t, service("web", 9))
	withSource(t, disk, func(p *run) {
		p.delivers(cluster("b", service("other", 1)))
		disk.Step, disk.Stop = 0, 1
		p.passes(3 * time.Second)
		p.holds("shop/web")
		p.health(true, "put local mirror aside: input/output error")
		p.passes(10 * time.Second)
		p.holds("shop/other")
	})
}

// TestEarlier: a source of files may keep only objects that an earlier run has read at the same
// place, on the same node.
func TestEarlier(t *testing.T) {
	disk := saved(t, service("web", 9))
	of := func(node, origin string) *Source {
		return New(newScripted(), NewStore("d", disk), Config{Node: node, Origin: origin}, quiet())
	}
	got := of("n1", "kubernetes").Earlier()
	want := cluster("a", service("web", 9))
	if len(got.Services) != 1 || len(got.Slices) != 1 || len(got.Nodes) != 1 || len(got.Pods) != 1 {
		t.Fatalf("%+v", got)
	}
	for a, b := range map[proto.Message]proto.Message{
		got.Services[0]: want.GetServices()[0].GetService(), got.Slices[0]: want.GetServices()[0].GetSlices()[0],
		got.Nodes[0]: want.GetNode().GetSelf(), got.Pods[0]: want.GetNode().GetPods()[0],
	} {
		if diff := cmp.Diff(b, a, protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	if got := of("n2", "kubernetes").Earlier(); got != nil {
		t.Errorf("of another node: %+v", got)
	}
	if got := of("n1", "files:/x").Earlier(); got != nil {
		t.Errorf("from another place: %+v", got)
	}
	if got := New(newScripted(), NewStore("e", disk), Config{Node: "n1"}, quiet()).Earlier(); got != nil {
		t.Errorf("without a mirror: %+v", got)
	}
}
