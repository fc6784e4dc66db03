package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// contents are the files of a directory with what they hold.
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
		if err := Replace(path, []byte(content)); err != nil {
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
	for range 2 { // the second time there is nothing to take away
		if err := Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if got := contents(t, dir); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

// A crash leaves a file that was not finished; it does not stay, and is nobody's content.
func TestWhatACrashLeftIsWrittenOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	if err := os.WriteFile(path+unfinished, []byte("much more than will be there, but only a par"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, dir); len(got) != 1 || got["a.json"] != "whole" {
		t.Errorf("the directory has %q", got)
	}
}

func TestWhatCannotBeReplacedStays(t *testing.T) {
	for name, obstacle := range map[string]func(path string) error{
		"the name is a directory's": func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"the name meanwhile is a directory's": func(path string) error {
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				return err
			}
			return os.MkdirAll(filepath.Join(path+unfinished, "x"), 0o700)
		},
	} {
		path := filepath.Join(t.TempDir(), "a.json")
		if err := obstacle(path); err != nil {
			t.Fatal(err)
		}
		if err := Replace(path, []byte("new")); err == nil {
			t.Errorf("%s: no error", name)
		}
		if content, err := os.ReadFile(path); err == nil && string(content) != "old" {
			t.Errorf("%s: %q", name, content)
		}
	}
}
