package simulator

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// Crashes returns the number of crashes of VPP, and the reason of the last one.
func (c Counters) Crashes() (n uint64, reason string) { return c.crashes, c.lastCrash }

// fire sends a request that is not expected to be answered.
func (r *rig) fire(req api.Message) {
	r.t.Helper()
	stream, err := r.conn.NewStream(timeout(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := stream.SendMsg(req); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = stream.Close() })
}

// manyLocals returns a row with n backends.
func manyLocals(n int) *nat44_ed.Nat44AddDelLbStaticMapping {
	row := lb(at(vip, 80), selfTwice, 0)
	for i := range n {
		row.Locals = append(row.Locals, nat44_ed.Nat44LbAddrPort{
			Addr: [4]byte{10, 2, byte(i >> 8), byte(i)}, Port: 80, Probability: byte(min(i, 1)),
		})
	}
	return row
}

func TestCrashInputs(t *testing.T) {
	svc, a, b := at(vip, 80), at(backendA, 8080), at(backendB, 8080)
	tests := map[string]func(*rig){
		"256 locals":             func(r *rig) { r.fire(manyLocals(256)) },
		"300 locals, NAT off":    func(r *rig) { r.ok(enable(false, 0)); r.fire(manyLocals(300)) },
		"256 locals in a delete": func(r *rig) { row := manyLocals(256); row.IsAdd = false; r.fire(row) },
		"weight sum 256": func(r *rig) {
			r.ok(lb(svc, selfTwice, 128, a, b))
			if v := r.Send(tcp(clientPod, 1, svc)); v.Action != Died {
				r.t.Error(v)
			}
		},
		"only pads": func(r *rig) {
			r.ok(lb(svc, selfTwice, 0, a, b))
			r.Send(tcp(clientPod, 1, svc))
		},
		"affinity and an inside-only interface": func(r *rig) {
			r.ok(&nat44_ed.Nat44InterfaceAddDelFeature{Flags: nat_types.NAT_IS_OUTSIDE, SwIfIndex: r.index("p1")})
			row := lb(svc, selfTwice, 10, a, b)
			row.Affinity = 10
			r.ok(row)
			r.Send(tcp(clientPod, 1, svc))
		},
		"cnat translation without paths": func(r *rig) {
			r.fire(&cnat.CnatTranslationUpdate{Translation: cnat.CnatTranslation{IPProto: 6}})
		},
		"a range of half the address space": func(r *rig) {
			r.fire(&nat44_ed.Nat44AddDelAddressRange{IsAdd: true, LastIPAddress: [4]byte{127, 255, 255, 254}})
		},
		"injected": func(r *rig) {
			r.Inject(Fault{Message: "nat44_user_dump", Crash: true})
			r.fire(&nat44_ed.Nat44UserDump{})
		},
	}
	for name, kill := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			kill(r)
			until(t, "vpp dies", func() bool { return !r.Alive() })
			if n, reason := r.Counters().Crashes(); n != 1 || reason == "" {
				t.Errorf("%d crashes, reason %q", n, reason)
			}
			if _, err := os.Stat(r.Socket()); err != nil {
				t.Errorf("socket file is gone: %v", err)
			}
			if _, err := net.Dial("unix", r.Socket()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("dial: %v, want connection refused", err)
			}
			if r.State() != "" || r.Incarnation() != 0 {
				t.Error("a dead VPP has state")
			}
		})
	}
}

func TestHarmlessNeighboursOfCrashInputs(t *testing.T) {
	svc, a, b := at(vip, 80), at(backendA, 8080), at(backendB, 8080)
	r := newRig(t)
	r.ok(manyLocals(255))
	r.ok(unrow(svc))
	r.ok(lb(svc, selfTwice, 127, a, b))
	r.dial(tcp(clientPod, 1, svc))
	// Rows that would kill VPP are harmless until a packet hits them.
	r.ok(lb(at(otherVIP, 80), selfTwice, 0, a, b))
	r.ok(unrow(at(otherVIP, 80)))
	if !r.Alive() {
		t.Error("VPP died")
	}
}

func TestRestart(t *testing.T) {
	r := newRig(t)
	r.ok(lb(at(vip, 80), selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	r.dial(tcp(clientPod, 1, at(vip, 80)))
	pid, ids := r.inc.pid, r.inc.ids
	r.Crash()
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	if r.inc.pid == pid || r.Incarnation() != 2 {
		t.Errorf("pid %d, incarnation %d", r.inc.pid, r.Incarnation())
	}
	for _, name := range r.catalog.Names {
		id := r.inc.ids.Of(name)
		if strings.HasPrefix(name, "sockclnt_create") {
			if ids.Of(name) != id {
				t.Errorf("fixed id of %s changed", name)
			}
			continue
		}
		if ids.Message(id) != nil {
			t.Fatalf("id %d of %s meant something before the restart", id, name)
		}
	}
	if strings.Contains(r.State(), "nat44 sessions") || !strings.Contains(r.State(), "disabled") {
		t.Errorf("state survived:\n%s", r.State())
	}
	if _, ok := r.Interfaces()["p1"]; !ok {
		t.Error("OnBoot did not rebuild the topology")
	}
	again := connect(t, r.VPP)
	if cfg := invoke[nat44_ed.Nat44ShowRunningConfigReply](t, again, &nat44_ed.Nat44ShowRunningConfig{}); cfg.Sessions != 0 {
		t.Error("NAT is enabled after a restart")
	}
}

func TestAutoRestart(t *testing.T) {
	r := bareRig(t, Options{AutoRestart: true, RestartDelay: time.Millisecond})
	for n := uint64(2); n < 5; n++ {
		r.Crash()
		until(t, "vpp comes back and opens its socket", func() bool {
			// which it does when its topology is built
			if r.Incarnation() != n {
				return false
			}
			c, err := net.Dial("unix", r.Socket())
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		})
	}
}

func TestCrashWaitsForOnBoot(t *testing.T) {
	crashed := make(chan struct{})
	v := New(Options{OnBoot: func(v *VPP) {
		go func() {
			v.Crash()
			close(crashed)
		}()
		select {
		case <-crashed:
			t.Error("VPP died before OnBoot had returned")
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := v.AddPod("p1", clientPod); err != nil {
			t.Error(err)
		}
	}})
	<-crashed
	if v.Alive() {
		t.Error("VPP is alive after the crash")
	}
	_ = v.Close()
}

func TestRestartKillsARunningVPP(t *testing.T) {
	r := newRig(t)
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	if r.Incarnation() != 2 || strings.Contains(r.State(), "twice-nat") {
		t.Errorf("incarnation %d:\n%s", r.Incarnation(), r.State())
	}
}

func TestClose(t *testing.T) {
	v := New(Options{AutoRestart: true, RestartDelay: time.Hour})
	path := t.TempDir() + "/api.sock"
	if err := v.Listen(path); err != nil {
		t.Fatal(err)
	}
	if err := v.Listen(path); !errors.Is(err, ErrListening) {
		t.Errorf("second listen: %v", err)
	}
	v.Crash()
	v.Crash()
	for range 2 {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("socket file: %v", err)
	}
	for name, err := range map[string]error{
		"listen": v.Listen(path), "restart": v.Restart(), "route": v.DefaultRoute("x", outsider),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
	v.Crash()
	v.Hang()
	v.Resume()
}

func TestListenOnBadPath(t *testing.T) {
	v := New(Options{})
	defer func() { _ = v.Close() }()
	if err := v.Listen(t.TempDir() + "/missing/api.sock"); err == nil {
		t.Error("no error")
	}
	if err := v.Listen(t.TempDir() + "/api.sock"); err != nil {
		t.Errorf("listen after a failed one: %v", err)
	}
}

func TestStaleSocketFileIsReplaced(t *testing.T) {
	path := t.TempDir() + "/api.sock"
	old := New(Options{})
	if err := old.Listen(path); err != nil {
		t.Fatal(err)
	}
	old.Crash()
	v := New(Options{})
	if err := v.Listen(path); err != nil {
		t.Fatal(err)
	}
	connect(t, v).Disconnect()
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
}
