package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-vpp/troupe/kube/durable"
)

// contents returns the files of a directory with their contents.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(content)
	}
	return found
}

func TestReplaceAndRemove(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for", "it")
	path := filepath.Join(dir, "a.json")
	for _, content := range []string{"long content", "short", ""} {
		if err := durable.Replace(durable.Disk{}, path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got := contents(t, dir); len(got) != 1 || got["a.json"] != content {
			t.Errorf("after %q the directory has %q", content, got)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("others may %v it", info.Mode())
	}
	for range 2 { // the second time there is no file to remove
		if err := durable.Remove(durable.Disk{}, path); err != nil {
			t.Fatal(err)
		}
	}
	if got := contents(t, dir); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

// TestWhatACrashLeftIsRemoved: an unfinished file is no content, and Clean removes it; other files
// stay.
func TestWhatACrashLeftIsRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, name := range []string{"a.json.tmp", "a.json.123.tmp", "b.json.7.tmp", "a.json.more"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("much more than will be there, but only a par"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := durable.Replace(durable.Disk{}, path, []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if err := durable.Clean(durable.Disk{}, dir, "a.json."); err != nil {
		t.Fatal(err)
	}
	got := contents(t, dir)
	if len(got) != 3 || got["a.json"] != "whole" || got["b.json.7.tmp"] == "" || got["a.json.more"] == "" {
		t.Errorf("the directory has %q", got)
	}
	if err := durable.Clean(durable.Disk{}, filepath.Join(dir, "missing"), ""); err != nil {
		t.Errorf("a missing directory: %v", err)
	}
}

func TestWhatCannotBeReplacedStays(t *testing.T) {
	for name, obstacle := range map[string]func(path string) error{
		"the name is a directory's":           func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"the name of its directory is a file": func(path string) error { return os.WriteFile(filepath.Dir(path), []byte("old"), 0o600) },
	} {
		path := filepath.Join(t.TempDir(), "dir", "a.json")
		if err := obstacle(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(filepath.Dir(path))
		if err := durable.Replace(durable.Disk{}, path, []byte("new")); err == nil {
			t.Errorf("%s: no error", name)
		}
		if content, err := os.ReadFile(path); err == nil {
			t.Errorf("%s: %q", name, content)
		}
		if after, _ := os.ReadFile(filepath.Dir(path)); string(before) != string(after) {
			t.Errorf("%s: %q became %q", name, before, after)
		}
		if found, _ := (durable.Disk{}).Find(filepath.Dir(path), "", durable.Unfinished); len(found) > 0 {
			t.Errorf("%s: left behind %q", name, found)
		}
	}
}

// TestEveryStepMayFail: after an error at any step the content is the old or the new one, and
// nothing is left behind; after Remove the file is there or not.
func TestEveryStepMayFail(t *testing.T) {
	for name, operation := range map[string]func(durable.FS) error{
		"replace": func(files durable.FS) error { return durable.Replace(files, "d/a", []byte("new")) },
		"remove":  func(files durable.FS) error { return durable.Remove(files, "d/a") },
	} {
		for stop, failed := 1, true; failed; stop++ {
			d := durable.NewMemory()
			if err := durable.Replace(d, "d/a", []byte("old")); err != nil {
				t.Fatal(err)
			}
			d.Step, d.Stop = 0, stop
			err := operation(d)
			if failed = err != nil; !failed && d.Step >= stop {
				t.Errorf("%s: step %d fails without an error", name, stop)
			}
			d.Stop = 0
			content := string(d.Content("d/a"))
			if !failed && content == "old" || failed && content != "old" && content != "new" && (name == "replace" || content != "") {
				t.Errorf("%s: step %d: %v, the content is %q", name, stop, err, content)
			}
			if left, _ := d.Find("d", "", durable.Unfinished); len(left) > 0 {
				t.Errorf("%s: step %d leaves %q", name, stop, left)
			}
		}
	}
}
