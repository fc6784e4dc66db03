package files

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/kubetest"
)

// start runs a source of a directory until the test ends, with a fast pace.
func start(t *testing.T, dir string, pace Pace) (*Source, *kubetest.Mirror, *buffer) {
	t.Helper()
	log, mirror := &buffer{}, kubetest.NewMirror()
	s := New(dir, "n1", slog.New(slog.NewTextHandler(log, nil)))
	s.pace, s.read.settle = pace, time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx, mirror) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		mirror.Check(t)
	})
	return s, mirror, log
}

// events has a long poll interval, so a change was seen through an event.
var events = Pace{Quiet: 5 * time.Millisecond, Most: 50 * time.Millisecond, Poll: time.Hour}

// polling has no events in time.
var polling = Pace{Quiet: time.Hour, Most: time.Hour, Poll: 5 * time.Millisecond}

// buffer is a log that can be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// has reports whether the view has exactly these nodes.
func has(names ...string) func(kubetest.View) bool {
	return func(v kubetest.View) bool {
		for _, name := range names {
			if v.Node.GetNodes()[name] == nil {
				return false
			}
		}
		return v.Node != nil && len(v.Node.GetNodes()) == len(names)
	}
}

func TestSourceFollowsTheDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", nodes("n1"))
	write(t, dir, "web.yaml", web)
	s, mirror, _ := start(t, dir, events)
	view := mirror.Wait(t, "the first snapshot", func(v kubetest.View) bool { return has("n1")(v) && v.Healthy() })
	if view.Snapshots != 1 || view.Services["shop/web"] == nil || view.Node.GetSelf().GetName() != "n1" {
		t.Errorf("first snapshot: %+v", view)
	}
	write(t, dir, "b.yaml", nodes("n2"))
	mirror.Wait(t, "a new file", has("n1", "n2"))
	write(t, dir, "a.yaml", nodes("n1", "n3"))
	mirror.Wait(t, "a changed file", has("n1", "n2", "n3"))
	if err := os.Rename(filepath.Join(dir, "b.yaml"), filepath.Join(dir, "b.bak")); err != nil {
		t.Fatal(err)
	}
	mirror.Wait(t, "a file renamed away", has("n1", "n3"))
	remove(t, dir, "web.yaml")
	view = mirror.Wait(t, "a deleted service", func(v kubetest.View) bool { return len(v.Services) == 0 })
	if view.Snapshots != 1 {
		t.Errorf("%d snapshots, want one: the rest are changes", view.Snapshots)
	}
	if diff := cmp.Diff(s.store.Snapshot().GetServices(), view.Snapshot().GetServices(), protocmp.Transform()); diff != "" {
		t.Errorf("the receiver differs (-source +receiver):\n%s", diff)
	}
	s.Refresh()
	mirror.Wait(t, "the snapshot that was asked for", func(v kubetest.View) bool { return v.Snapshots == 2 })
}

// TestSourceSelects: a dump of the whole cluster gives the objects that the API server would give
// to this node.
func TestSourceSelects(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", nodes("n1")+
		"apiVersion: v1\nkind: Service\nmetadata: {name: headless}\nspec: {clusterIP: None}\n---\n"+
		"apiVersion: v1\nkind: Pod\nmetadata: {name: here}\nspec: {nodeName: n1}\nstatus: {podIP: 10.1.0.2}\n---\n"+
		"apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: [10.96.0.0/12]}\n---\n"+
		"apiVersion: v1\nkind: Pod\nmetadata: {name: there}\nspec: {nodeName: n2}\nstatus: {podIP: 10.1.0.3}\n")
	_, mirror, _ := start(t, dir, events)
	view := mirror.Wait(t, "the first snapshot", has("n1"))
	if len(view.Services) != 0 || len(view.Node.GetPods()) != 1 || view.Node.GetPods()[0].GetName() != "here" ||
		!slices.Equal(view.Node.GetServiceCidrs(), []string{"10.96.0.0/12"}) {
		t.Errorf("delivered: %+v", view)
	}
}

// TestConfigMapVolume updates a ConfigMap volume like the kubelet: a new directory, and a symlink
// that is renamed over the old one.
func TestConfigMapVolume(t *testing.T) {
	dir := t.TempDir()
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	version := func(name, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), "a.yaml", text)
	}
	version("..1", nodes("n1"))
	link("..1", "..data")
	link("..data/a.yaml", "a.yaml")
	_, mirror, _ := start(t, dir, events)
	mirror.Wait(t, "the first version", has("n1"))
	version("..2", nodes("n1", "n2"))
	link("..2", "..data_tmp")
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	remove(t, dir, "..1")
	mirror.Wait(t, "the second version", has("n1", "n2"))
}

func TestSourcePolls(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "later")
	_, mirror, _ := start(t, dir, polling)
	mirror.Wait(t, "bad health without a directory", func(v kubetest.View) bool {
		return len(v.Healths) == 1 && !v.Healths[0].OK && strings.Contains(v.Healths[0].Reason, "no such file")
	})
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a.yaml", nodes("n1"))
	mirror.Wait(t, "the directory that came", func(v kubetest.View) bool { return has("n1")(v) && v.Healthy() })
	// A directory that was replaced does not have the old files.
	if err := os.Rename(dir, filepath.Join(parent, "old")); err != nil {
		t.Fatal(err)
	}
	view := mirror.Wait(t, "bad health again", func(v kubetest.View) bool { return !v.Healthy() })
	if !has("n1")(view) {
		t.Error("a directory that cannot be read has lost its objects")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a.yaml", nodes("n1", "n2"))
	mirror.Wait(t, "the new directory", func(v kubetest.View) bool { return has("n1", "n2")(v) && v.Healthy() })
}

// TestWatchFollowsAReplacedDirectory: after the path leads to another directory, its events count.
func TestWatchFollowsAReplacedDirectory(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "current")
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(parent, name), "a.yaml", nodes(name))
	}
	if err := os.Symlink("one", dir); err != nil {
		t.Fatal(err)
	}
	_, mirror, _ := start(t, dir, Pace{Quiet: time.Millisecond, Most: time.Millisecond, Poll: 20 * time.Millisecond})
	mirror.Wait(t, "the first directory", has("one"))
	if err := os.Symlink("two", dir+".tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".tmp", dir); err != nil {
		t.Fatal(err)
	}
	mirror.Wait(t, "the second directory", has("two"))
	write(t, filepath.Join(parent, "two"), "b.yaml", nodes("three"))
	mirror.Wait(t, "a change in the second directory", has("two", "three"))
}

// TestSourceKeepsTheLastGood: the value stays, the error is in the service, in the log once, and in
// the health as a warning.
func TestSourceKeepsTheLastGood(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "web.yaml", web)
	_, mirror, log := start(t, dir, events)
	mirror.Wait(t, "the service", func(v kubetest.View) bool { return v.Services["shop/web"] != nil })
	// renamed, because a file that is seen while it is empty has lost its objects
	write(t, dir, ".new", strings.Replace(web, "80", "http", 1))
	if err := os.Rename(filepath.Join(dir, ".new"), filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	view := mirror.Wait(t, "the error", func(v kubetest.View) bool { return len(v.Services["shop/web"].GetErrors()) == 1 && len(v.Healths) == 2 })
	if port := view.Services["shop/web"].GetService().GetPorts()[0].GetPort(); port != 80 {
		t.Errorf("port %d", port)
	}
	if last := view.Healths[1]; !last.OK || !strings.Contains(last.Reason, "spec.ports[0].port") {
		t.Errorf("health %+v", last)
	}
	write(t, dir, "other.yaml", nodes("n1"))
	mirror.Wait(t, "another file", has("n1"))
	if n := strings.Count(log.String(), "object not usable"); n != 1 {
		t.Errorf("the problem is %d times in the log:\n%s", n, log)
	}
	write(t, dir, "web.yaml", web)
	mirror.Wait(t, "the end of the error", func(v kubetest.View) bool {
		return len(v.Services["shop/web"].GetErrors()) == 0 && v.Healths[len(v.Healths)-1] == kube.Health{OK: true}
	})
}

// TestSourceRemembersAnEarlierRun: an object that is broken at the start keeps the value of the
// earlier run, and no other object does.
func TestSourceRemembersAnEarlierRun(t *testing.T) {
	earlier, problems := Decode(strings.NewReader(web+"\n---\n"+strings.ReplaceAll(web, "web", "gone")), "")
	if len(problems) > 0 || len(earlier.Services) != 2 {
		t.Fatalf("%v, %v", earlier, problems)
	}
	for name, tt := range map[string]struct {
		file, other string // "" = there is none
		port        uint32 // of shop/web, 0 = the service is missing
		gone        bool   // shop/gone is there
		bad         bool
	}{
		"a broken object":               {strings.Replace(web, "80", "http", 1), "", 80, false, true},
		"another value":                 {strings.Replace(web, "80", "81", 1), "", 81, false, false},
		"it is gone":                    {nodes("n1"), "", 0, false, false},
		"a file that means nothing":     {"{", "", 80, true, true},
		"two of them":                   {"{", "[", 80, true, true},
		"it stands elsewhere":           {"{", strings.Replace(web, "80", "81", 1), 81, true, true},
		"broken elsewhere":              {nodes("n1"), strings.Replace(web, "80", "http", 1), 80, false, true},
		"a broken object of a new name": {strings.Replace(strings.ReplaceAll(web, "web", "new"), "80", "http", 1), "", 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, mirror := t.TempDir(), kubetest.NewMirror()
			write(t, dir, "web.yaml", tt.file)
			if tt.other != "" {
				write(t, dir, "more.yaml", tt.other)
			}
			s := New(dir, "n1", slog.New(slog.DiscardHandler))
			s.pace = events
			s.Remember(earlier)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- s.Run(ctx, mirror) }()
			view := mirror.Wait(t, "the first word", func(v kubetest.View) bool { return len(v.Healths) > 0 })
			var port uint32
			if ports := view.Services["shop/web"].GetService().GetPorts(); len(ports) > 0 {
				port = ports[0].GetPort()
			}
			if bad := view.Healths[0].Reason != ""; port != tt.port || bad != tt.bad || (view.Services["shop/gone"] != nil) != tt.gone || view.Services["shop/new"] != nil {
				t.Errorf("port %d, services %v, health %v", port, view.Services, view.Healths)
			}
			// The remembered value is an ordinary last good value: it is gone when the object is
			// removed.
			remove(t, dir, "web.yaml")
			if tt.other != "" {
				remove(t, dir, "more.yaml")
			}
			mirror.Wait(t, "nothing", func(v kubetest.View) bool { return len(v.Services) == 0 })
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			mirror.Check(t)
		})
	}
}

// TestSourceGivesTheAcceptanceCases: the source delivers the normalised objects of every case.
func TestSourceGivesTheAcceptanceCases(t *testing.T) {
	for _, c := range kubetest.Load(t).Cases[:10] {
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			list := c.Objects.List(t)
			write(t, dir, "case.json", string(list))
			_, mirror, _ := start(t, dir, events)
			view := mirror.Wait(t, "the case", func(v kubetest.View) bool { return v.Snapshots == 1 })
			objects, problems := Decode(bytes.NewReader(list), "case.json")
			want := kubetest.Meaning(kube.Collect("n1", objects.Select("n1"), problems))
			if diff := cmp.Diff(want, kubetest.Meaning(view.Snapshot()), protocmp.Transform()); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
		})
	}
}
