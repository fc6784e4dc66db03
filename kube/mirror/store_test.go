package mirror

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/messages"
)

// revision returns a state whose size also differs from the other states.
func revision(n uint64) *messages.Mirror {
	var services []*messages.ServiceInput
	for i := range n % 7 {
		services = append(services, service(fmt.Sprintf("s%03d", i), 1))
	}
	return &messages.Mirror{Revision: n, Node: "n1", Snapshot: cluster("a", services...)}
}

// read returns the revision that a disk holds, 0 = none. It fails if the file is damaged.
func read(t interface{ Fatalf(string, ...any) }, disk durable.FS) uint64 {
	store := NewStore("d", disk)
	if err := store.Clean(); err != nil {
		t.Fatalf("clean: %v", err)
	}
	m, err := store.Snapshot()
	if errors.Is(err, ErrNone) {
		return 0
	}
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if want := earlier(revision(m.GetRevision())); !proto.Equal(want, m) {
		diff := cmp.Diff(want, m, protocmp.Transform())
		t.Fatalf("revision %d is not what was saved (-want +got)\n%s", m.GetRevision(), diff)
	}
	return m.GetRevision()
}

// TestASaveHappensAsAWholeOrNotAtAll: a save is complete or has no effect, if an error, the end of
// the process or the end of the machine interrupts it at any step.
func TestASaveHappensAsAWholeOrNotAtAll(t *testing.T) {
	for _, late := range []bool{false, true} {
		for stop := 1; ; stop++ {
			saving := func(dies bool) (*durable.Memory, error) {
				d := durable.NewMemory()
				if err := NewStore("d", d).SaveSnapshot(revision(3)); err != nil {
					t.Fatal(err)
				}
				d.Step, d.Stop, d.Dies, d.Late = 0, stop, dies, late
				return d, NewStore("d", d).SaveSnapshot(revision(4))
			}
			d, err := saving(false)
			if err == nil {
				if d.Step >= stop {
					t.Fatalf("step %d fails without an error", stop)
				}
				d.Stop = 0
				if got := read(t, d); got != 4 {
					t.Fatalf("revision %d after a save without an error", got)
				}
				break // there are no more steps
			}
			d.Stop = 0
			if got := read(t, d); got != 3 && got != 4 {
				t.Errorf("step %d fails (late %t): revision %d", stop, late, got)
			}
			if rest, _ := d.Find("d", "", durable.Unfinished); len(rest) > 0 {
				t.Errorf("step %d fails (late %t): %q is left", stop, late, rest)
			}
			if d, _ := saving(true); true {
				if got := read(t, d.Killed()); got != 3 && got != 4 {
					t.Errorf("killed at step %d (late %t): revision %d", stop, late, got)
				}
			}
			for changes := range 6 {
				for _, bytes := range []float64{0, 0.5, 1} {
					d, _ := saving(true)
					if got := read(t, d.Rebooted(changes, bytes)); got != 3 && got != 4 {
						t.Errorf("power lost at step %d (late %t), %d changes: revision %d", stop, late, changes, got)
					}
				}
			}
		}
	}
}

// TestWhatWasSavedStays: after any history of saves, errors and crashes of the machine, the file
// has the last saved state, or a state whose save began later.
func TestWhatWasSavedStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := durable.NewMemory()
		durable, tried := uint64(0), uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"save": func(t *rapid.T) {
				d.Step, d.Stop = 0, rapid.IntRange(0, 9).Draw(t, "stop")
				d.Dies, d.Late = rapid.Bool().Draw(t, "dies"), rapid.Bool().Draw(t, "late")
				tried++
				if err := NewStore("d", d).SaveSnapshot(revision(tried)); err == nil {
					durable = tried
				}
				d.Stop = 0
				if d.Dead() && rapid.Bool().Draw(t, "only the process") {
					d.Killed()
				}
			},
			"power lost": func(t *rapid.T) {
				d = d.Rebooted(rapid.IntRange(0, 9).Draw(t, "changes"), rapid.Float64Range(0, 1).Draw(t, "bytes"))
			},
			"": func(t *rapid.T) {
				if d.Dead() {
					d = d.Rebooted(rapid.IntRange(0, 9).Draw(t, "changes"), rapid.Float64Range(0, 1).Draw(t, "bytes"))
				}
				if got := read(t, d); got < durable || got > tried {
					t.Fatalf("revision %d, saved %d, tried %d", got, durable, tried)
				}
			},
		})
	})
}

// saverEnv names the directory in which this test binary saves until it is killed.
const saverEnv = "TROUPE_MIRROR_SAVER"

func saveForever(dir string) {
	store := NewStore(dir, durable.Disk{})
	for n := uint64(1); ; n++ {
		if err := store.SaveSnapshot(revision(n)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if n == 1 {
			fmt.Println("saved")
		}
	}
}

// TestKilled kills a process while it saves, on the real disk.
func TestKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "mirror")
	for n := range 20 {
		c := exec.CommandContext(t.Context(), self)
		c.Env = append(os.Environ(), saverEnv+"="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		word := make([]byte, 5)
		if _, err := out.Read(word); err != nil || string(word) != "saved" {
			t.Fatalf("%q, %v", word, err)
		}
		time.Sleep(time.Duration(n) * 500 * time.Microsecond) // at any point of a save
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // it was killed
		store := NewStore(dir, durable.Disk{})
		if err := store.Clean(); err != nil {
			t.Fatal(err)
		}
		m, err := store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(earlier(revision(m.GetRevision())), m, protocmp.Transform()); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v are left", entries, err)
	}
}

// TestOnTheDisk: only the owner can read the files; both kinds are in one directory; damaged and
// foreign files are kept.
func TestOnTheDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "mirror")
	store := NewStore(dir, durable.Disk{})
	if _, err := store.Snapshot(); !errors.Is(err, ErrNone) {
		t.Errorf("before there is a directory: %v", err)
	}
	if err := store.Clean(); err != nil {
		t.Errorf("before there is a directory: %v", err)
	}
	claim := &messages.MirroredClaim{Id: 7, Node: "n1"}
	if err := errors.Join(store.SaveSnapshot(revision(2)), store.SaveClaim(claim), store.SaveSnapshot(revision(3))); err != nil {
		t.Fatal(err)
	}
	if m, err := store.Snapshot(); err != nil || m.GetRevision() != 3 {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := store.Claim(); err != nil || m.GetId() != 7 {
		t.Errorf("%v, %v", m, err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "snapshot"): 0o600, filepath.Join(dir, "claim"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}

	path, err := store.PutForeignAside()
	if err != nil || path != filepath.Join(dir, "snapshot.foreign") {
		t.Fatalf("%q, %v", path, err)
	}
	if _, err := store.Snapshot(); !errors.Is(err, ErrNone) {
		t.Errorf("after it was put aside: %v", err)
	}

	file := filepath.Join(dir, "claim")
	if err := os.WriteFile(file, []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "read local mirror " + file + ": the file is damaged: it has only 9 bytes; it is kept as " + file + ".damaged"
	if _, err := store.Claim(); !errors.Is(err, ErrDamaged) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if kept, err := os.ReadFile(file + ".damaged"); err != nil || string(kept) != "half a fi" {
		t.Errorf("%q, %v", kept, err)
	}
	if _, err := store.Claim(); !errors.Is(err, ErrNone) {
		t.Errorf("the second time: %v", err)
	}
}

// TestWhatCannotBeReadStays: after an error of the disk the file stays, because it may be intact.
func TestWhatCannotBeReadStays(t *testing.T) {
	d := durable.NewMemory()
	store := NewStore("d", d)
	if err := store.SaveSnapshot(revision(1)); err != nil {
		t.Fatal(err)
	}
	d.Step, d.Stop = 0, 1
	if _, err := store.Snapshot(); !errors.Is(err, durable.ErrIO) || !strings.Contains(err.Error(), "read local mirror d/snapshot") {
		t.Errorf("got %v", err)
	}
	if got := read(t, d); got != 1 {
		t.Errorf("revision %d", got)
	}
	pipe := filepath.Join(t.TempDir(), "m")
	if err := os.MkdirAll(filepath.Join(pipe, "snapshot"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStore(pipe, durable.Disk{}).Snapshot(); !errors.Is(err, ErrDamaged) {
		t.Errorf("a directory in its place: %v", err)
	}
}
