package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const node = "apiVersion: v1\nkind: Node\nmetadata: {name: %}\n---\n"

// nodes returns a file with these Nodes.
func nodes(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(strings.Replace(node, "%", name, 1))
	}
	return b.String()
}

// write creates or replaces a file.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// wantContent scans and compares objects and errors.
func wantContent(t *testing.T, d *directory, objects, problems []string) content {
	t.Helper()
	got, err := d.scan(true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objects, contents(got.objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(problems, texts(got.problems)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	return got
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	d := &directory{path: dir, files: map[string]*file{}}
	wantContent(t, d, nil, nil)
	write(t, dir, "b.yaml", nodes("b"))
	write(t, dir, "a.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`)
	write(t, dir, "c.yml", nodes("c"))
	write(t, dir, "notes.txt", nodes("x"))
	write(t, dir, ".hidden.yaml", nodes("x"))
	if err := os.Mkdir(filepath.Join(dir, "sub.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	wantContent(t, d, []string{"Node a", "Node b", "Node c"}, nil)
	write(t, dir, "b.yaml", nodes("b", "b2"))
	remove(t, dir, "c.yml")
	wantContent(t, d, []string{"Node a", "Node b", "Node b2"}, nil)
	remove(t, dir, "a.json")
	remove(t, dir, "b.yaml")
	wantContent(t, d, nil, nil)
	remove(t, dir, ".")
	if _, err := d.scan(true); err == nil {
		t.Error("a directory that is not there can be scanned")
	}
}

func TestDuplicatesInFiles(t *testing.T) {
	dir := t.TempDir()
	d := &directory{path: dir, files: map[string]*file{}}
	write(t, dir, "b.yaml", web)
	write(t, dir, "a.yaml", strings.Replace(web, "10.96.0.1", "10.96.0.2", 1))
	got := wantContent(t, d, []string{"Service shop/web"}, []string{"b.yaml Service shop/web: occurs also in a.yaml, which counts"})
	if ips := got.objects.Services[0].GetClusterIps(); ips[0] != "10.96.0.2" {
		t.Errorf("cluster IP %v, want the one in a.yaml", ips)
	}
	remove(t, dir, "a.yaml")
	if got := wantContent(t, d, []string{"Service shop/web"}, nil); got.objects.Services[0].GetClusterIps()[0] != "10.96.0.1" {
		t.Error("the second file does not count after the first is gone")
	}
}

// TestLastGood: an object that cannot be decoded any more keeps its last value; a removed object is
// gone.
func TestLastGood(t *testing.T) {
	dir := t.TempDir()
	d := &directory{path: dir, files: map[string]*file{}}
	good := strings.TrimSpace(web) + "\n---\n" + nodes("a", "b")
	broken := strings.Replace(good, "80", "http", 1)
	const complaint = "f.yaml Service shop/web spec.ports[0].port: is a string, want int32 (line 1)"

	write(t, dir, "f.yaml", good)
	wantContent(t, d, []string{"Service shop/web", "Node a", "Node b"}, nil)
	write(t, dir, "f.yaml", broken)
	got := wantContent(t, d, []string{"Service shop/web", "Node a", "Node b"}, []string{complaint})
	if ports := got.objects.Services[0].GetPorts(); len(ports) != 1 || ports[0].GetPort() != 80 || got.unreadable != "" {
		t.Errorf("the last good value is %v, unreadable %q", ports, got.unreadable)
	}
	write(t, dir, "f.yaml", broken+nodes("c"))
	wantContent(t, d, []string{"Service shop/web", "Node a", "Node b", "Node c"}, []string{complaint})
	// The problem names the broken object, so another missing object is really gone.
	write(t, dir, "f.yaml", strings.Replace(broken, "name: a", "name: a2", 1))
	wantContent(t, d, []string{"Service shop/web", "Node a2", "Node b"}, []string{complaint})
	// The content of a broken document is unknown, so all old objects stay.
	write(t, dir, "f.yaml", "[\n---\n"+nodes("b"))
	wantContent(t, d, []string{"Service shop/web", "Node b", "Node a2"}, []string{"f.yaml document 1, line 1: is not YAML: did not find expected node content"})
	write(t, dir, "f.yaml", nodes("b"))
	wantContent(t, d, []string{"Node b"}, nil)
	write(t, dir, "f.yaml", "")
	wantContent(t, d, nil, nil)
}

// TestHalfWrittenFiles: "kubectl get > FILE" empties a file before it writes it, so a file that
// became shorter counts when it has settled.
func TestHalfWrittenFiles(t *testing.T) {
	dir := t.TempDir()
	d := &directory{path: dir, files: map[string]*file{}, settle: time.Hour}
	all := []string{"Service shop/web", "Node a", "Node b"}
	waits := []string{"f.yaml: lost objects and may be half-written; its last content stays for a while"}
	good := strings.TrimSpace(web) + "\n---\n" + nodes("a", "b")
	write(t, dir, "f.yaml", good)
	wantContent(t, d, all, nil)
	for _, half := range []string{"", good[:len(good)/2], strings.TrimSpace(web)} {
		write(t, dir, "f.yaml", half)
		if got := wantContent(t, d, all, waits); got.again <= 0 || got.again > emptied*time.Hour || half != "" && got.again > time.Hour {
			t.Errorf("%q settles in %s", half, got.again)
		}
		write(t, dir, "f.yaml", good)
		wantContent(t, d, all, nil)
	}
	write(t, dir, "f.yaml", good+nodes("c"))
	wantContent(t, d, append(all, "Node c"), nil)
	write(t, dir, "f.yaml", nodes("a"))
	wantContent(t, d, append(all, "Node c"), waits)
	d.settle = 0
	wantContent(t, d, []string{"Node a"}, nil)
	d.settle = time.Hour
	write(t, dir, ".next", "")
	if err := os.Rename(filepath.Join(dir, ".next"), filepath.Join(dir, "f.yaml")); err != nil {
		t.Fatal(err)
	}
	wantContent(t, d, nil, nil) // a file that was replaced is complete
	write(t, dir, "g.yaml", "")
	wantContent(t, d, nil, nil)

	write(t, dir, "f.yaml", "")
	earlier, _ := Decode(strings.NewReader(good), "f.yaml")
	d = &directory{path: dir, files: map[string]*file{}, settle: time.Hour, earlier: earlier}
	remove(t, dir, "g.yaml")
	wantContent(t, d, all, waits) // empty at the start, when an earlier run had objects
	d.settle = 0
	wantContent(t, d, nil, nil)
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	d := &directory{path: dir, files: map[string]*file{}}
	write(t, dir, "f.yaml", nodes("a"))
	wantContent(t, d, []string{"Node a"}, nil)
	remove(t, dir, "f.yaml")
	if err := os.Symlink("nowhere", filepath.Join(dir, "f.yaml")); err != nil {
		t.Fatal(err)
	}
	got, err := d.scan(false)
	if err != nil || len(got.objects.Nodes) != 1 || len(got.problems) != 1 || !strings.Contains(got.unreadable, "f.yaml: ") {
		t.Errorf("a symlink to nowhere: %v, %v", got, err)
	}
	write(t, dir, "nowhere", nodes("a"))
	wantContent(t, d, []string{"Node a"}, nil)
	if err := os.Symlink("/dev/null", filepath.Join(dir, "null.yaml")); err != nil {
		t.Fatal(err)
	}
	wantContent(t, d, []string{"Node a"}, []string{"null.yaml: is no regular file; its last content stays"})
}

// TestPollReadsOnlyWhatLooksChanged: at a poll the time and the size of a file decide, after an
// event its content does.
func TestPollReadsOnlyWhatLooksChanged(t *testing.T) {
	dir := t.TempDir()
	d := &directory{path: dir, files: map[string]*file{}}
	path, stamp := filepath.Join(dir, "f.yaml"), time.Unix(1700000000, 0)
	write(t, dir, "f.yaml", nodes("a"))
	if err := os.Chtimes(path, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	wantContent(t, d, []string{"Node a"}, nil)
	write(t, dir, "f.yaml", nodes("b"))
	if err := os.Chtimes(path, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	if got, err := d.scan(false); err != nil || contents(got.objects)[0] != "Node a" {
		t.Errorf("poll: %v, %v", contents(got.objects), err)
	}
	wantContent(t, d, []string{"Node b"}, nil)
	write(t, dir, "f.yaml", nodes("c"))
	if got, err := d.scan(false); err != nil || contents(got.objects)[0] != "Node c" {
		t.Errorf("poll after a change of time: %v, %v", contents(got.objects), err)
	}
}
