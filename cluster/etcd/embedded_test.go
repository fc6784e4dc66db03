package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/cluster/etcd/etcdtest"
)

func TestEmbeddedKeepsItsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	member := etcdtest.StartIn(t, dir)
	if want := []string{"unix://" + filepath.Join(dir, etcd.SocketName)}; member.Client().Endpoints()[0] != want[0] {
		t.Errorf("endpoints %v, want %v", member.Client().Endpoints(), want)
	}
	etcdtest.Put(t, member.Client(), "/k", "v")
	etcdtest.Close(t, member)
	etcdtest.Close(t, member) // a second time does nothing
	if got := etcdtest.Keys(t, etcdtest.StartIn(t, dir).Client())["/k"]; got != "v" {
		t.Errorf("after a restart the value is %q", got)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v (%v), want 0700", info.Mode(), err)
	}
}

func TestEmbeddedOnLoopback(t *testing.T) {
	member, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: t.TempDir(), NoSync: true, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer etcdtest.Close(t, member)
	if e := member.Client().Endpoints()[0]; !strings.HasPrefix(e, "http://127.0.0.1:") || strings.HasSuffix(e, ":0") {
		t.Errorf("endpoint %s, want a loopback address with its port", e)
	}
	etcdtest.Put(t, etcdtest.Client(t, member.Client().Endpoints()), "/k", "v")
}

// TestEmbeddedLongPath uses a directory whose socket would not fit into an address.
func TestEmbeddedLongPath(t *testing.T) {
	member := etcdtest.StartIn(t, filepath.Join(t.TempDir(), strings.Repeat("d", etcd.MaxSocketPath)))
	socket := strings.TrimPrefix(member.Client().Endpoints()[0], "unix://")
	etcdtest.Put(t, member.Client(), "/k", "v")
	etcdtest.Close(t, member)
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory of the socket is still there: %v", err)
	}
}

func TestEmbeddedLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	member := etcdtest.StartIn(t, dir)
	if _, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: dir}); !errors.Is(err, etcd.ErrLocked) {
		t.Errorf("second etcd in one directory: %v, want ErrLocked", err)
	}
	etcdtest.Put(t, member.Client(), "/k", "v") // the first one does not mind
	etcdtest.Close(t, member)

	// Another etcd has the database open and does not use our lock.
	file, err := os.Open(filepath.Join(dir, etcd.DataDirName, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := etcd.TryLock(file); err != nil {
		t.Fatal(err)
	}
	if _, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: dir}); !errors.Is(err, etcd.ErrLocked) {
		t.Errorf("database open elsewhere: %v, want ErrLocked", err)
	}
	_ = file.Close()
	etcdtest.StartIn(t, dir)
}

// TestEmbeddedAfterKill starts with the files of a killed etcd. They are copied while etcd runs, at
// moments at which the database is ahead of the commit index in the log.
func TestEmbeddedAfterKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	member := etcdtest.StartIn(t, dir)
	for i := range 5 {
		etcdtest.Put(t, member.Client(), fmt.Sprintf("/k%d", i), "v")
		if i%2 == 0 { // now the database is ahead of the log
			member.ForceCommit()
		}
		killed := filepath.Join(t.TempDir(), "etcd")
		if err := os.CopyFS(filepath.Join(killed, etcd.DataDirName), os.DirFS(filepath.Join(dir, etcd.DataDirName))); err != nil {
			t.Fatal(err)
		}
		after, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: killed, NoSync: true})
		if err != nil {
			t.Fatalf("after a kill at write %d: %v", i, err)
		}
		if got := etcdtest.Keys(t, after.Client())[fmt.Sprintf("/k%d", i)]; got != "v" {
			t.Errorf("after a kill write %d has the value %q", i, got)
		}
		etcdtest.Put(t, after.Client(), "/more", "v")
		etcdtest.Close(t, after)
	}
}

// TestEmbeddedStopsWhileStarting interrupts starts at various moments; the directory is free
// afterwards.
func TestEmbeddedStopsWhileStarting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	for _, after := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		member, err := etcd.OpenEmbedded(etcd.EmbeddedConfig{Dir: dir, NoSync: true})
		if err != nil {
			t.Fatalf("stopped after %s: %v", after, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if err := member.Start(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stopped after %s: %v", after, err)
		}
		cancel()
		etcdtest.Close(t, member)
	}
	etcdtest.Put(t, etcdtest.StartIn(t, dir).Client(), "/k", "v")
}

func TestEmbeddedDamaged(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, member string){
		"database overwritten": func(t *testing.T, member string) {
			overwrite(t, filepath.Join(member, "snap", "db"))
		},
		"database missing": func(t *testing.T, member string) {
			if err := os.Remove(filepath.Join(member, "snap", "db")); err != nil {
				t.Fatal(err)
			}
		},
		"log overwritten": func(t *testing.T, member string) {
			logs, err := filepath.Glob(filepath.Join(member, "wal", "*.wal"))
			if err != nil || len(logs) == 0 {
				t.Fatalf("no log: %v", err)
			}
			overwrite(t, logs[0])
		},
		"log missing": func(t *testing.T, member string) {
			if err := os.RemoveAll(filepath.Join(member, "wal")); err != nil {
				t.Fatal(err)
			}
		},
		"not a directory": func(t *testing.T, member string) {
			if err := os.RemoveAll(member); err != nil {
				t.Fatal(err)
			}
			overwrite(t, member)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "etcd")
			member := etcdtest.StartIn(t, dir)
			etcdtest.Put(t, member.Client(), "/k", "v")
			etcdtest.Close(t, member)
			damage(t, filepath.Join(dir, etcd.DataDirName, "member"))
			broken, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: dir})
			if err == nil {
				etcdtest.Close(t, broken)
				t.Fatal("started on damaged data")
			}
			if name != "not a directory" && !errors.Is(err, etcd.ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", err)
			}
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("error does not name the directory: %v", err)
			}
			etcdtest.Wipe(t, dir)
			etcdtest.StartIn(t, dir) // nothing is left locked
		})
	}
}

func overwrite(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEmbeddedRefuses(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	file := filepath.Join(t.TempDir(), "file")
	overwrite(t, file)
	for name, cfg := range map[string]etcd.EmbeddedConfig{
		"no directory":     {},
		"file as dir":      {Dir: file},
		"port in use":      {Dir: t.TempDir(), Listen: busy.Addr().String()},
		"long socket path": {Dir: t.TempDir(), Listen: "/" + strings.Repeat("s", etcd.MaxSocketPath)},
		"no port":          {Dir: t.TempDir(), Listen: "localhost"},
	} {
		if member, err := etcdtest.StartEmbedded(cfg); err == nil {
			t.Errorf("%s: started", name)
			etcdtest.Close(t, member)
		}
	}
}

// TestEmbeddedCloseEndsWatches closes an etcd while another client watches and does not close.
func TestEmbeddedCloseEndsWatches(t *testing.T) {
	member := etcdtest.Start(t)
	client := etcdtest.Client(t, member.Client().Endpoints())
	watch := client.Watch(t.Context(), "/k")
	etcdtest.Put(t, client, "/k", "v")
	<-watch
	start := time.Now()
	etcdtest.Close(t, member)
	t.Logf("closed in %s", time.Since(start).Round(time.Millisecond))
	if _, open := <-member.Err(); open {
		t.Error("error channel still open after the end")
	}
}

// TestEmbeddedCloseTimeout: after the timeout the directory stays locked until the server has
// stopped.
func TestEmbeddedCloseTimeout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	member, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: dir, NoSync: true, CloseTimeout: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	release := member.Hold()
	if err := member.Close(); !errors.Is(err, etcd.ErrCloseTimeout) {
		t.Errorf("got %v, want ErrCloseTimeout", err)
	}
	if _, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: dir}); !errors.Is(err, etcd.ErrLocked) {
		t.Errorf("start beside a server that is stopping: %v, want ErrLocked", err)
	}
	release()
	deadline := time.Now().Add(patience)
	for {
		next, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: dir, NoSync: true})
		if err == nil {
			etcdtest.Close(t, next)
			return
		}
		if !errors.Is(err, etcd.ErrLocked) || time.Now().After(deadline) {
			t.Fatalf("start after the server has stopped: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestNewClusterEveryTime: an etcd without its old data has another cluster ID.
func TestNewClusterEveryTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	cluster := func(member *etcd.Embedded) uint64 {
		resp, err := member.Client().Get(context.Background(), "/k")
		if err != nil {
			t.Fatal(err)
		}
		etcdtest.Close(t, member)
		return resp.Header.ClusterId
	}
	first, second := cluster(etcdtest.StartIn(t, dir)), cluster(etcdtest.StartIn(t, dir))
	if first != second {
		t.Error("a restart made another cluster")
	}
	etcdtest.Wipe(t, dir)
	if third := cluster(etcdtest.StartIn(t, dir)); third == first {
		t.Error("an etcd without its data passes for the same cluster")
	}
}
