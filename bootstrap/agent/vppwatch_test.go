package agent

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// withVPP is the configuration of an agent with a simulated VPP behind a socket in a directory.
func withVPP(t *testing.T, dir string) *config.Agent {
	t.Helper()
	cfg := everything(t)
	cfg.Etcd.Mode, cfg.Etcd.DataDir, cfg.DataDir = config.EtcdNone, "", ""
	cfg.VPP.Mode, cfg.VPP.APISocket, cfg.VPP.StatsSocket = config.VPPSocket, filepath.Join(dir, "vpp"), ""
	return cfg
}

// listenVPP starts a simulated VPP with an uplink and a pod of this node at a socket.
func listenVPP(t *testing.T, socket string) *simulator.VPP {
	t.Helper()
	vpp := simulator.New(simulator.Options{})
	_, err := vpp.AddPod("pod2", netip.MustParseAddr("10.1.1.2"))
	if connectUplink(t, vpp); err != nil {
		t.Fatal(err)
	}
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = vpp.Close() })
	return vpp
}

// connectUplink gives a simulated VPP an interface with the default route.
func connectUplink(t *testing.T, vpp *simulator.VPP) {
	t.Helper()
	_, err := vpp.AddInterface("uplink0", []netip.Prefix{netip.MustParsePrefix("192.168.16.1/24")}, true)
	if err = errors.Join(err, vpp.DefaultRoute("uplink0", netip.MustParseAddr("192.168.16.254"))); err != nil {
		t.Fatal(err)
	}
}

// TestALostVPPIsSaid: a warning with the first cause, an Event at the Node, and a count that grows
// with each connection.
func TestALostVPPIsSaid(t *testing.T) {
	dir, log := shortDir(t), &logged{}
	cfg := withVPP(t, dir)
	vpp := listenVPP(t, cfg.VPP.APISocket)
	a, err := Start(cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	ready(t, a)
	start := len(log.String())
	if err := vpp.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is said", func() bool { return strings.Contains(log.String(), "reason=VPPLost") })
	eventually(t, "readiness is a warning", func() bool {
		return strings.Contains(log.String(), `level=WARN msg="readiness changed" actor=agent/healer ready=false reason="link: `)
	})
	first, rest, _ := strings.Cut(log.String()[start:], `level=WARN msg="VPP is lost`)
	if strings.Contains(first, "ready=false") || !strings.Contains(rest, `object="Node shop-a" reason=VPPLost`) {
		t.Errorf("the cause is not first:\n%s", log)
	}
	listenVPP(t, cfg.VPP.APISocket)
	eventually(t, "it is back", func() bool { return strings.Contains(log.String(), `object="Node shop-a" reason=Recovered`) })
	if got := scrape(t, a)["troupe_vpp_connections_total"]; got != "2" {
		t.Errorf("%s connections", got)
	}
}

// TestTheDirectoryOfVPPWasReplaced: a directory without links never shows a new VPP. An open file
// stands for the mount of a pod.
func TestTheDirectoryOfVPPWasReplaced(t *testing.T) {
	dir := shortDir(t)
	mount, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer mount.Close()
	cfg := withVPP(t, filepath.Join("/proc/self/fd", strconv.Itoa(int(mount.Fd()))))
	a := run(t, cfg)
	reason(t, a, "link", "waiting for VPP")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := a.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "was replaced on the node") {
		t.Errorf("it ended with %v", err)
	}
}

// TestASecondAgentEnds, with the same VPP and with the same data directory.
func TestASecondAgentEnds(t *testing.T) {
	dir := shortDir(t)
	one := withVPP(t, dir)
	one.DataDir = filepath.Join(dir, "data")
	listenVPP(t, one.VPP.APISocket)
	a := run(t, one)
	ready(t, a)
	same := withVPP(t, dir)
	same.DataDir = one.DataDir
	if _, err := Start(same, quiet()); err == nil || !strings.Contains(err.Error(), "dataDir: another agent has ") {
		t.Errorf("the same data directory: %v", err)
	}
	b := run(t, withVPP(t, dir))
	if err := b.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "vpp.apiSocket: another agent programs the VPP") ||
		!strings.Contains(err.Error(), "agent of node shop-a, process ") {
		t.Errorf("the same VPP: %v", err)
	}
	if b.Backend().Readiness().Ready {
		t.Error("the second agent is ready")
	}
}

// TestTheLockOfAReplacedDirectory: the directory of VPP was replaced, or the lock was removed =>
// the next agent that connects, and the first one, do not both use the VPP.
func TestTheLockOfAReplacedDirectory(t *testing.T) {
	dir := shortDir(t)
	first, second := &vppWatch{socket: filepath.Join(dir, "vpp", "s")}, &vppWatch{socket: filepath.Join(dir, "vpp", "s")}
	for _, w := range []*vppWatch{first, second} {
		w.agent = &Agent{cfg: &config.Agent{NodeName: "n1"}}
		w.up.Store(true)
		defer func() { _ = w.agent.vppLock.Load().release() }()
	}
	succeed(t, os.Mkdir(filepath.Join(dir, "vpp"), 0o700))
	succeed(t, first.claim())
	succeed(t, first.claim()) // the next connection to the same VPP
	if err := second.claim(); !errors.Is(err, errLocked) {
		t.Errorf("the second agent: %v", err)
	}
	succeed(t, os.Rename(filepath.Join(dir, "vpp"), filepath.Join(dir, "old")))
	succeed(t, os.Mkdir(filepath.Join(dir, "vpp"), 0o700))
	succeed(t, first.claim())
	if err := second.claim(); !errors.Is(err, errLocked) {
		t.Errorf("the second agent after the directory was replaced: %v", err)
	}
	succeed(t, os.Remove(lockOf(first.socket)))
	succeed(t, second.claim())
	if err := first.keepClaim(); !errors.Is(err, errLocked) {
		t.Errorf("the first agent without its lock: %v", err)
	}
	succeed(t, os.Remove(lockOf(first.socket)))
	succeed(t, second.keepClaim())
	if err := first.claim(); !errors.Is(err, errLocked) {
		t.Errorf("the second agent has not taken the lock again: %v", err)
	}
}

// TestVPPWithoutALockIsNotUsed: where no lock can be taken nothing is written to VPP.
func TestVPPWithoutALockIsNotUsed(t *testing.T) {
	dir := shortDir(t)
	cfg := withVPP(t, dir)
	listenVPP(t, cfg.VPP.APISocket)
	succeed(t, os.Mkdir(lockOf(cfg.VPP.APISocket), 0o700)) // also root cannot open it as a file
	a := run(t, cfg)
	if err := a.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot lock the VPP at") {
		t.Errorf("it ended with %v", err)
	}
	if a.Backend().Readiness().Ready {
		t.Error("the agent is ready")
	}
}

// TestAServiceThatVPPCannotServe: SCTP alone, and beside TCP.
func TestAServiceThatVPPCannotServe(t *testing.T) {
	cfg := withVPP(t, shortDir(t))
	listenVPP(t, cfg.VPP.APISocket)
	dir := t.TempDir()
	cfg.Kubernetes.Source = config.SourceFilesPrefix + dir
	const objects = `{apiVersion: v1, kind: Node, metadata: {name: shop-a, uid: n}, spec: {podCIDR: 10.1.1.0/24}}
---
{apiVersion: v1, kind: Service, metadata: {name: sctp, namespace: shop, uid: a}, spec: {clusterIP: 10.96.0.9, ports: [{protocol: SCTP, port: 5060}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: both, namespace: shop, uid: b}, spec: {clusterIP: 10.96.0.10,
  ports: [{name: a, protocol: SCTP, port: 5060}, {name: b, protocol: TCP, port: 80}]}}
`
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	a := run(t, cfg)
	ready(t, a)
	eventually(t, "the services are known", func() bool {
		all, err := a.Backend().Services(t.Context())
		return err == nil && len(all) == 2 && all[0].State != api.ServicePending && all[1].State != api.ServicePending
	})
	for key, want := range map[string]api.ServiceState{"shop/sctp": api.ServiceNotServed, "shop/both": api.ServicePartly} {
		if s := must(a.Backend().Service(t.Context(), key))(t); s.State != want || !strings.Contains(s.Error, "/SCTP is not served") {
			t.Errorf("%s: %s, %s", key, s.State, s.Error)
		}
	}
	numbers := scrapeServices(t, a)
	for series, want := range map[string]string{`{state="partly"}`: "1", `{state="not-served"}`: "1", `{state="in-sync"}`: "0"} {
		if got := numbers["troupe_services"+series]; got != want {
			t.Errorf("%s: %q, want %s", series, got, want)
		}
	}
}

// letIn makes room for an agent beside this one, which stands for the agent after a restart.
func letIn(t *testing.T, a *Agent) {
	t.Helper()
	for _, held := range []*lock{a.vppLock.Swap(nil), a.dataLock.Swap(nil)} {
		if err := held.release(); err != nil {
			t.Fatal(err)
		}
	}
}
