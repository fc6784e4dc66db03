package cluster

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
)

func closeEtcd(t testing.TB, etcd *Embedded) {
	t.Helper()
	if err := etcd.Close(); err != nil {
		t.Fatalf("close etcd: %v", err)
	}
}

// wipe removes the data of a stopped etcd.
func wipe(t testing.TB, dir string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, dataDirName)); err != nil {
		t.Fatal(err)
	}
}

func TestEmbeddedKeepsItsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	etcd := startEtcdIn(t, dir)
	if want := []string{"unix://" + filepath.Join(dir, socketName)}; etcd.Endpoints()[0] != want[0] {
		t.Errorf("endpoints %v, want %v", etcd.Endpoints(), want)
	}
	mustPut(t, etcd.Client(), "/k", "v")
	closeEtcd(t, etcd)
	closeEtcd(t, etcd) // a second time does nothing
	if got := etcdKeys(t, startEtcdIn(t, dir).Client())["/k"]; got != "v" {
		t.Errorf("after a restart the value is %q", got)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v (%v), want 0700", info.Mode(), err)
	}
}

func TestEmbeddedOnLoopback(t *testing.T) {
	etcd, err := StartEmbedded(EmbeddedConfig{Dir: t.TempDir(), NoSync: true, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer closeEtcd(t, etcd)
	if e := etcd.Endpoints()[0]; !strings.HasPrefix(e, "http://127.0.0.1:") || strings.HasSuffix(e, ":0") {
		t.Errorf("endpoint %s, want a loopback address with its port", e)
	}
	mustPut(t, newTestClient(t, etcd.Endpoints()), "/k", "v")
}

// TestEmbeddedLongPath uses a directory whose socket would not fit into an address.
func TestEmbeddedLongPath(t *testing.T) {
	etcd := startEtcdIn(t, filepath.Join(t.TempDir(), strings.Repeat("d", maxSocketPath)))
	socket := strings.TrimPrefix(etcd.Endpoints()[0], "unix://")
	mustPut(t, etcd.Client(), "/k", "v")
	closeEtcd(t, etcd)
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory of the socket is still there: %v", err)
	}
}

func TestEmbeddedLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	etcd := startEtcdIn(t, dir)
	if _, err := StartEmbedded(EmbeddedConfig{Dir: dir}); !errors.Is(err, ErrLocked) {
		t.Errorf("second etcd in one directory: %v, want ErrLocked", err)
	}
	mustPut(t, etcd.Client(), "/k", "v") // the first one does not mind
	closeEtcd(t, etcd)

	// Another etcd has the database open and does not use our lock.
	file, err := os.Open(filepath.Join(dir, dataDirName, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tryLock(file); err != nil {
		t.Fatal(err)
	}
	if _, err := StartEmbedded(EmbeddedConfig{Dir: dir}); !errors.Is(err, ErrLocked) {
		t.Errorf("database open elsewhere: %v, want ErrLocked", err)
	}
	_ = file.Close()
	startEtcdIn(t, dir)
}

// TestEmbeddedAfterKill starts with the files of a killed etcd. They are copied while etcd runs, at
// moments at which the database is ahead of the commit index in the log.
func TestEmbeddedAfterKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	etcd := startEtcdIn(t, dir)
	for i := range 5 {
		mustPut(t, etcd.Client(), fmt.Sprintf("/k%d", i), "v")
		if i%2 == 0 { // now the database is ahead of the log
			etcd.server.Server.Backend().ForceCommit()
		}
		killed := filepath.Join(t.TempDir(), "etcd")
		if err := os.CopyFS(filepath.Join(killed, dataDirName), os.DirFS(filepath.Join(dir, dataDirName))); err != nil {
			t.Fatal(err)
		}
		after, err := StartEmbedded(EmbeddedConfig{Dir: killed, NoSync: true})
		if err != nil {
			t.Fatalf("after a kill at write %d: %v", i, err)
		}
		if got := etcdKeys(t, after.Client())[fmt.Sprintf("/k%d", i)]; got != "v" {
			t.Errorf("after a kill write %d has the value %q", i, got)
		}
		mustPut(t, after.Client(), "/more", "v")
		closeEtcd(t, after)
	}
}

// TestEmbeddedStopsWhileStarting interrupts starts at various moments; the directory is free
// afterwards.
func TestEmbeddedStopsWhileStarting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	for _, after := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		etcd, err := OpenEmbedded(EmbeddedConfig{Dir: dir, NoSync: true})
		if err != nil {
			t.Fatalf("stopped after %s: %v", after, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if err := etcd.Start(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stopped after %s: %v", after, err)
		}
		cancel()
		closeEtcd(t, etcd)
	}
	mustPut(t, startEtcdIn(t, dir).Client(), "/k", "v")
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
			etcd := startEtcdIn(t, dir)
			mustPut(t, etcd.Client(), "/k", "v")
			closeEtcd(t, etcd)
			damage(t, filepath.Join(dir, dataDirName, "member"))
			broken, err := StartEmbedded(EmbeddedConfig{Dir: dir})
			if err == nil {
				closeEtcd(t, broken)
				t.Fatal("started on damaged data")
			}
			if name != "not a directory" && !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", err)
			}
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("error does not name the directory: %v", err)
			}
			wipe(t, dir)
			startEtcdIn(t, dir) // nothing is left locked
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
	for name, cfg := range map[string]EmbeddedConfig{
		"no directory":     {},
		"file as dir":      {Dir: file},
		"port in use":      {Dir: t.TempDir(), Listen: busy.Addr().String()},
		"long socket path": {Dir: t.TempDir(), Listen: "/" + strings.Repeat("s", maxSocketPath)},
		"no port":          {Dir: t.TempDir(), Listen: "localhost"},
	} {
		if etcd, err := StartEmbedded(cfg); err == nil {
			t.Errorf("%s: started", name)
			closeEtcd(t, etcd)
		}
	}
}

// TestEmbeddedCloseEndsWatches closes an etcd while another client watches and does not close.
func TestEmbeddedCloseEndsWatches(t *testing.T) {
	etcd := startEtcd(t)
	client := newTestClient(t, etcd.Endpoints())
	watch := client.Watch(t.Context(), "/k")
	mustPut(t, client, "/k", "v")
	<-watch
	start := time.Now()
	closeEtcd(t, etcd)
	t.Logf("closed in %s", time.Since(start).Round(time.Millisecond))
	if _, open := <-etcd.Err(); open {
		t.Error("error channel still open after the end")
	}
}

// TestEmbeddedCloseTimeout: after the timeout the directory stays locked until the server has
// stopped.
func TestEmbeddedCloseTimeout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	etcd, err := StartEmbedded(EmbeddedConfig{Dir: dir, NoSync: true, CloseTimeout: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := etcd.Close(); !errors.Is(err, ErrCloseTimeout) {
		t.Errorf("got %v, want ErrCloseTimeout", err)
	}
	if _, err := StartEmbedded(EmbeddedConfig{Dir: dir}); !errors.Is(err, ErrLocked) {
		t.Errorf("start beside a server that is stopping: %v, want ErrLocked", err)
	}
	deadline := time.Now().Add(patience)
	for {
		next, err := StartEmbedded(EmbeddedConfig{Dir: dir, NoSync: true})
		if err == nil {
			closeEtcd(t, next)
			return
		}
		if !errors.Is(err, ErrLocked) || time.Now().After(deadline) {
			t.Fatalf("start after the server has stopped: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestNewClusterEveryTime: an etcd without its old data has another cluster ID.
func TestNewClusterEveryTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	cluster := func(etcd *Embedded) uint64 {
		resp, err := etcd.Client().Get(context.Background(), "/k")
		if err != nil {
			t.Fatal(err)
		}
		closeEtcd(t, etcd)
		return resp.Header.ClusterId
	}
	first, second := cluster(startEtcdIn(t, dir)), cluster(startEtcdIn(t, dir))
	if first != second {
		t.Error("a restart made another cluster")
	}
	wipe(t, dir)
	if third := cluster(startEtcdIn(t, dir)); third == first {
		t.Error("an etcd without its data passes for the same cluster")
	}
}
