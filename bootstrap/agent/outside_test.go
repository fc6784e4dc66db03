package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/actors/external"
	layers "github.com/troupe-vpp/troupe/vpp/external"
)

// TestKeep: the next actor always finds the saved documents; the next process finds them if there
// is a directory.
func TestKeep(t *testing.T) {
	for name, dir := range map[string]string{"with a directory": filepath.Join(t.TempDir(), "a", "b"), "in memory": ""} {
		t.Run(name, func(t *testing.T) {
			s := &outsideSources{dir: dir}
			check := func(s *outsideSources, want map[string][]byte) {
				t.Helper()
				if got, err := s.Load(t.Context()); err != nil || cmp.Diff(want, got) != "" {
					t.Fatalf("loaded %q, %v, want %q", got, err, want)
				}
			}
			save := func(source, document string) {
				t.Helper()
				var text []byte
				if document != "" {
					text = []byte(document)
				}
				if err := s.Save(t.Context(), source, text); err != nil {
					t.Fatal(err)
				}
			}
			check(s, map[string][]byte{})
			save("etcd:n1/web", "{1}")
			save("ops", "{2}")
			save("ops", "{3}")
			save("nobody", "")
			want := map[string][]byte{"etcd:n1/web": []byte("{1}"), "ops": []byte("{3}")}
			check(s, want)
			if dir == "" {
				want = map[string][]byte{}
			}
			check(&outsideSources{dir: dir}, want)
			save("ops", "")
			check(s, map[string][]byte{"etcd:n1/web": []byte("{1}")})
			if dir != "" {
				check(&outsideSources{dir: dir}, map[string][]byte{"etcd:n1/web": []byte("{1}")})
			}
		})
	}
}

// TestKeepFails: a document that cannot be written is an error that names its source, and the
// document before it is still there.
func TestKeepFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &outsideSources{dir: filepath.Join(file, "x")}
	if err := s.Save(t.Context(), "ops", []byte("{}")); err == nil || len(s.kept) != 0 {
		t.Errorf("%v, kept %q", err, s.kept)
	}
}

// TestKeepWithoutLoad: where one document cannot be read, saving another one does not forget the
// rest, and a document can be removed.
func TestKeepWithoutLoad(t *testing.T) {
	dir := t.TempDir()
	before := &outsideSources{dir: dir}
	for _, source := range []string{"ops", "old"} {
		if err := before.Save(t.Context(), source, []byte("{1}")); err != nil {
			t.Fatal(err)
		}
	}
	unreadable := filepath.Join(dir, "x"+documentSuffix)
	if err := os.Mkdir(unreadable, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &outsideSources{dir: dir}
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("it could be loaded")
	}
	if err := errors.Join(s.Save(t.Context(), "file", []byte("{2}")), s.Save(t.Context(), "old", nil), os.Remove(unreadable)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load(t.Context())
	if want := map[string][]byte{"ops": []byte("{1}"), "file": []byte("{2}")}; err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("loaded %q, %v, want %q", got, err, want)
	}
}

// Testfile: the file is followed whether it exists or not, and a file that is not YAML is an error
// that says so.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	s := &outsideSources{file: path}
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan external.Update, 10), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(u external.Update) { told <- u }) }()
	next := func() external.Update {
		t.Helper()
		select {
		case u := <-told:
			return u
		case <-time.After(20 * time.Second):
			t.Fatal("no update")
			return external.Update{}
		}
	}
	replace := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	if u := next(); u.Family != "file" || len(u.Documents) != 0 || u.Err != nil {
		t.Errorf("without a file: %+v", u)
	}
	replace("kind: x # with a comment\n")
	if u := next(); string(u.Documents["file"]) != `{"kind":"x"}` {
		t.Errorf("a file: %+v", u)
	}
	replace("a: [1\n")
	if u := next(); len(u.Documents) != 0 || !errors.Is(u.Unreadable["file"], layers.ErrInvalid) {
		t.Errorf("a broken file: %+v", u)
	}
	replace("a: 1\na: 2\n")
	if u := next(); !errors.Is(u.Unreadable["file"], layers.ErrInvalid) {
		t.Errorf("a key twice: %+v", u)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if u := next(); len(u.Documents)+len(u.Unreadable) != 0 || u.Err != nil {
		t.Errorf("the file is gone: %+v", u)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if u := next(); u.Err == nil {
		t.Errorf("a directory: %+v", u)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
