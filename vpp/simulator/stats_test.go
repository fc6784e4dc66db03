package simulator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"
)

// listenStats gives a simulator a statistics socket.
func listenStats(t testing.TB, v *VPP) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stats.sock")
	if err := v.ListenStats(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// statsOf returns GoVPP's client of the statistics. It must be disconnected before the socket file
// goes: it would follow its successor in a goroutine of its own.
func statsOf(t testing.TB, path string) *statsclient.StatsClient {
	t.Helper()
	client := statsclient.NewStatsClient(path, statsclient.SetSocketRetryTimeout(time.Millisecond))
	if err := client.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// stat reads one statistic.
func stat(t testing.TB, client adapter.StatsAPI, name string) adapter.Stat {
	t.Helper()
	entries, err := client.DumpStats("^" + name + "$")
	if err != nil || len(entries) != 1 {
		t.Fatalf("%s: %v, %v", name, entries, err)
	}
	return entries[0].Data
}

// sessionsIn are the sessions by thread as the statistics say it.
func sessionsIn(t testing.TB, client adapter.StatsAPI) []uint64 {
	t.Helper()
	counters, ok := stat(t, client, statSessions).(adapter.SimpleCounterStat)
	if !ok {
		t.Fatalf("%s is no counter", statSessions)
	}
	var threads []uint64
	for _, c := range counters {
		if len(c) != 1 {
			t.Fatalf("counters %v", counters)
		}
		threads = append(threads, uint64(c[0]))
	}
	return threads
}

func TestStatsFollowTheSessions(t *testing.T) {
	r := newRig(t)
	client := statsOf(t, listenStats(t, r.VPP))
	svc := at(vip, 80)
	r.ok(lb(svc, selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	for n := range uint16(5) {
		if got := sessionsIn(t, client); !slices.Equal(got, []uint64{uint64(n)}) {
			t.Errorf("%v after %d connections", got, n)
		}
		r.dial(tcp(clientPod, 4000+n, svc))
	}
	if got := stat(t, client, statMaxSessions); got != adapter.ScalarStat(63*1024) {
		t.Errorf("enabled with %v", got)
	}
	r.ok(&nat44_ed.Nat44SetSessionLimit{SessionLimit: 7})
	if got := stat(t, client, statMaxSessions); got != adapter.ScalarStat(63*1024) {
		t.Errorf("a limit that is set later is not shown by VPP, here it is: %v", got)
	}
	row := lb(svc, selfTwice, 10, at(backendA, 8080), at(backendB, 8080))
	row.IsAdd = false
	r.ok(row)
	if got := sessionsIn(t, client); !slices.Equal(got, []uint64{0}) {
		t.Errorf("%v after the mapping went", got)
	}
	r.advance(25 * time.Second)
	if got := stat(t, client, statHeartbeat); got != adapter.ScalarStat(3) { // the first at once
		t.Errorf("heartbeat %v after 25 s", got)
	}
}

// TestStatsDirectoryChangesWithInterfaces: a client that has read entries before learns that they
// are stale, and reads them anew.
func TestStatsDirectoryChangesWithInterfaces(t *testing.T) {
	r := newRig(t)
	client := statsOf(t, listenStats(t, r.VPP))
	dir, err := client.PrepareDir("^" + statSessions + "$")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.UpdateDir(dir); err != nil {
		t.Errorf("nothing has changed: %v", err)
	}
	index := invoke[interfaces.CreateLoopbackReply](t, r.conn, &interfaces.CreateLoopback{}).SwIfIndex
	if err := client.UpdateDir(dir); err == nil {
		t.Error("the directory is not stale")
	}
	names := func() []string {
		vector, ok := stat(t, client, statNames).(adapter.NameStat)
		if !ok {
			t.Fatal("no names")
		}
		var out []string
		for _, n := range vector {
			out = append(out, n.String())
		}
		return out
	}
	if got := names(); len(got) != 6 || got[0] != "local0" || got[index] != "loop0" {
		t.Errorf("names %q", got)
	}
	r.ok(&interfaces.DeleteLoopback{SwIfIndex: interface_types.InterfaceIndex(r.Interfaces()["loop0"])})
	if got := names(); slices.Contains(got, "loop0") {
		t.Errorf("names %q after it was deleted", got)
	}
	for range 50 { // both halves of the memory
		index = invoke[interfaces.CreateLoopbackReply](t, r.conn, &interfaces.CreateLoopback{}).SwIfIndex
		if got := names(); got[index] == "" || sessionsIn(t, client)[0] != 0 {
			t.Fatalf("names %q", got)
		}
	}
}

// TestStatsOfADeadVPP: they stay as they were; the next VPP has its own.
func TestStatsOfADeadVPP(t *testing.T) {
	r := newRig(t)
	path := listenStats(t, r.VPP)
	if n, err := r.FillSessions(3); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	old := statsOf(t, path)
	r.Crash()
	if got := sessionsIn(t, old); !slices.Equal(got, []uint64{3}) {
		t.Errorf("%v", got)
	}
	if err := statsclient.NewStatsClient(path).Connect(); err == nil {
		t.Error("a dead VPP serves statistics")
	}
	if err := old.Disconnect(); err != nil {
		t.Error(err)
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := sessionsIn(t, statsOf(t, path)); !slices.Equal(got, []uint64{0}) {
		t.Errorf("%v", got)
	}
}

// TestStatsOfAHangingVPP: a client waits until VPP goes on, or dies.
func TestStatsOfAHangingVPP(t *testing.T) {
	for name, end := range map[string]func(r *rig) bool{
		"resumed": func(r *rig) bool { r.Resume(); return true },
		"dead":    func(r *rig) bool { r.Crash(); return false },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			path := listenStats(t, r.VPP)
			r.Hang()
			client := statsclient.NewStatsClient(path)
			connected := make(chan error, 1)
			go func() { connected <- client.Connect() }()
			served := end(r)
			select {
			case err := <-connected:
				if (err == nil) != served {
					t.Errorf("connected: %v", err)
				}
			case <-time.After(patience):
				t.Fatal("the client waits for ever")
			}
			if served {
				if err := client.Disconnect(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestStatsSocket(t *testing.T) {
	v := New(Options{WithoutPlugins: []string{"nat44_ed"}, NATWorkers: 2})
	path := listenStats(t, v)
	if err := v.ListenStats(path + "2"); err == nil {
		t.Error("listens twice")
	}
	if v.StatsSocket() != path {
		t.Errorf("listens on %q", v.StatsSocket())
	}
	client := statsOf(t, path)
	entries, err := client.ListStats()
	if err != nil || len(entries) != 5 {
		t.Errorf("entries %v, %v", entries, err)
	}
	if err := client.Disconnect(); err != nil {
		t.Error(err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
	if err := v.ListenStats(path); err == nil {
		t.Error("listens although it is closed")
	}
}

func TestStatsOfWorkers(t *testing.T) {
	v := New(Options{NATWorkers: 2})
	t.Cleanup(func() { _ = v.Close() })
	client := statsOf(t, listenStats(t, v))
	if _, err := v.Exec(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: 9}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.FillSessions(4); err != nil {
		t.Fatal(err)
	}
	if got := sessionsIn(t, client); !slices.Equal(got, []uint64{0, 4, 0}) {
		t.Errorf("threads %v", got)
	}
	if got := stat(t, client, statMaxSessions); got != adapter.ScalarStat(9) {
		t.Errorf("enabled with %v", got)
	}
}

func TestSummaryOfSessions(t *testing.T) {
	r := newRig(t)
	svc := at(vip, 80)
	r.ok(lb(svc, selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	r.dial(tcp(clientPod, 4000, svc))
	if n, err := r.FillSessions(3); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	r.advance(6 * time.Minute)
	r.ok(&nat44_ed.Nat44SetSessionLimit{SessionLimit: 77})
	got := invoke[vlib.CliInbandReply](t, r.conn, &vlib.CliInband{Cmd: "show nat44 summary"}).Reply
	for _, line := range []string{
		"max translations per thread: 77 fib 0", "total sessions: 4 (timed out: 3)", "    total: 3 (timed out: 3)",
		"        established: 1 (timed out: 0)", "udp LRU min session timeout 300 (now 360)",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
}
