package catalog

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/kube/files"
)

// start runs a source until the test ends, and returns what it publishes.
func start(t *testing.T, path string, pace files.Pace) <-chan Snapshot {
	t.Helper()
	s := NewYAML(path, DefaultLimits(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	s.pace = pace
	out := make(chan Snapshot)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- s.Run(ctx, func(s Snapshot) {
			select {
			case out <- s:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return out
}

// next returns the first snapshot for which the condition is true.
func next(t *testing.T, from <-chan Snapshot, what string, fits func(Snapshot) bool) Snapshot {
	t.Helper()
	deadline := time.After(30 * time.Second)
	var last Snapshot
	for {
		select {
		case last = <-from:
			if fits(last) {
				return last
			}
		case <-deadline:
			t.Fatalf("no snapshot with %s, the last is %+v", what, last)
		}
	}
}

// has reports whether a snapshot is complete and has exactly these services.
func has(names ...string) func(Snapshot) bool {
	return func(s Snapshot) bool { return s.Complete && slices.Equal(namesOf(s.Services), names) }
}

func namesOf(services []Service) []string {
	var out []string
	for _, s := range services {
		out = append(out, s.Name)
	}
	return out
}

// listingOf returns a catalog of services with these names.
func listingOf(names ...string) string {
	out := "services:\n"
	for _, name := range names {
		out += "- {name: " + name + ", ports: [{name: http, port: 80}]}\n"
	}
	return out
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// events has a long poll interval, so a change was seen through an event. polling has no events in
// time.
var (
	events  = files.Pace{Quiet: 5 * time.Millisecond, Most: 50 * time.Millisecond, Poll: time.Hour}
	polling = files.Pace{Quiet: time.Hour, Most: time.Hour, Poll: 5 * time.Millisecond}
)

// TestA23File: a broken file is reported with the line, and the gate keeps its services. A swapped
// symlink, as in a ConfigMap volume, is followed.
func TestA23File(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"..1", "..2"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "..1", "catalog"), listingOf("billing", "web"))
	write(t, filepath.Join(dir, "..2", "catalog"), listingOf("billing", "db"))
	for link, to := range map[string]string{"..data": "..1", "catalog": "..data/catalog"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	published := start(t, filepath.Join(dir, "catalog"), events)
	g := NewGate(30, 100_000)
	owned := []string{"billing", "web"}
	g.Offer(next(t, published, "the first version", has("billing", "web")), owned)
	// Any event makes it look: the broken version is written into the directory that is linked,
	// which is not watched.
	write(t, filepath.Join(dir, "..1", "catalog"), listingOf("billing")+"  prots: []\n")
	write(t, filepath.Join(dir, "touched"), "")
	broken := next(t, published, "an error", func(s Snapshot) bool { return !s.Complete })
	if len(broken.Problems) != 1 || !strings.HasPrefix(broken.Problems[0].Message, "catalog: line 3: is not YAML: ") {
		t.Errorf("problems %v", broken.Problems)
	}
	for range 5 {
		g.Offer(broken, owned)
	}
	if got := namesOf(g.Wanted(owned)); !slices.Equal(got, owned) {
		t.Errorf("wanted %v after a mistake", got)
	}
	if err := os.Symlink("..2", filepath.Join(dir, "..tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	next(t, published, "the second version", has("billing", "db"))
}

// TestDirectory: all files are one catalog. A broken file makes the snapshot incomplete; other
// files are left out.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.yaml"), listingOf("b"))
	write(t, filepath.Join(dir, "a.json"), `{"services": [{"name": "a"}]}`)
	write(t, filepath.Join(dir, "README.md"), "no catalog")
	write(t, filepath.Join(dir, ".hidden.yaml"), "no catalog")
	published := start(t, dir, events)
	next(t, published, "both files", has("a", "b"))
	write(t, filepath.Join(dir, "c.yml"), listingOf("c", "a"))
	if s := next(t, published, "the third file", has("a", "b", "c")); len(s.Problems) != 1 || s.Problems[0].Reason != ReasonDuplicate {
		t.Errorf("problems %v", s.Problems)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "d.yaml")); err != nil {
		t.Fatal(err)
	}
	s := next(t, published, "the file that cannot be read", func(s Snapshot) bool { return !s.Complete })
	if len(s.Services) != 3 || !strings.HasPrefix(s.Problems[0].Message, "d.yaml: ") {
		t.Errorf("snapshot %+v", s)
	}
	for _, name := range []string{"b.yaml", "d.yaml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	next(t, published, "the rest", has("a", "c"))
}

// TestPoll: a path that appears later is found. A path that vanishes gives an incomplete snapshot,
// not an empty one. An unchanged catalog is published again, as a confirmation.
func TestPoll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	published := start(t, path, polling)
	next(t, published, "a missing file", func(s Snapshot) bool { return !s.Complete && len(s.Problems) == 1 })
	write(t, path, listingOf("web"))
	for range 3 {
		next(t, published, "the file", has("web"))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	next(t, published, "the file that went", func(s Snapshot) bool { return !s.Complete })
}

// TestEventsDoNotConfirm: a look after an event publishes only changes.
func TestEventsDoNotConfirm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	write(t, path, listingOf("web"))
	s := NewYAML(path, DefaultLimits(), slog.New(slog.DiscardHandler))
	n := 0
	s.publish = func(Snapshot) { n++ }
	for _, step := range []struct {
		event bool
		want  int
	}{{true, 1}, {true, 1}, {false, 2}, {true, 2}, {false, 3}} {
		if s.look(step.event); n != step.want {
			t.Errorf("%d published, want %d", n, step.want)
		}
	}
	write(t, path, listingOf("db"))
	if s.look(true); n != 4 {
		t.Errorf("%d published, want 4", n)
	}
}

// TestTooLarge: a file above the limit is not read, and neither is a path that is no file.
func TestTooLarge(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), listingOf("a"))
	write(t, filepath.Join(dir, "b.yaml"), listingOf("b"))
	if err := os.Symlink("/dev/null", filepath.Join(dir, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	limits := DefaultLimits()
	limits.Body = 60
	s := NewYAML(dir, limits, slog.New(slog.DiscardHandler))
	var got Snapshot
	s.publish = func(s Snapshot) { got = s }
	s.look(true)
	if got.Complete || !slices.Equal(namesOf(got.Services), []string{"a"}) || len(got.Problems) != 2 ||
		got.Problems[0].Message != "b.yaml: the catalog is too large" || got.Problems[1].Message != "c.yaml: is no regular file" {
		t.Errorf("snapshot %+v", got)
	}
}
