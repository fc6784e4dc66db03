package simulator

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

func TestFaultRetval(t *testing.T) {
	r := newRig(t)
	svc, a, b := at(vip, 80), at(backendA, 8080), at(backendB, 8080)
	remove := r.Inject(Fault{Message: "nat44_add_del_lb_static_mapping", Skip: 1, Times: 2, Retval: -99})
	defer remove()
	for i, want := range []int32{0, -99, -99, vnet.RetValueExist} {
		if got := r.call(lb(svc, selfTwice, 10, a, b)); got != want {
			t.Errorf("add %d: retval %d, want %d", i, got, want)
		}
	}
	if rows := r.Rows(); len(rows) != 1 {
		t.Errorf("rows %q", rows)
	}
	forever := r.Inject(Fault{Message: "nat44_add_del_lb_static_mapping", Retval: -1})
	for range 3 {
		if got := r.call(unrow(svc)); got != -1 {
			t.Errorf("retval %d", got)
		}
	}
	forever()
	r.ok(unrow(svc))
	r.Inject(Fault{Retval: -5})
	r.ClearFaults()
	r.ok(&memclnt.ControlPing{})
}

// TestFaultSpares: the fault neither strikes a spared request nor counts it.
func TestFaultSpares(t *testing.T) {
	r := newRig(t)
	spared, struck, a, b := at(vip, 80), at(vip, 81), at(backendA, 8080), at(backendB, 8080)
	r.Inject(Fault{Message: "nat44_add_del_lb_static_mapping", Times: 1, Retval: -99, Spared: func(request api.Message) bool {
		row, is := request.(*nat44_ed.Nat44AddDelLbStaticMapping)
		return is && row.ExternalPort == 80
	}})
	r.ok(lb(spared, selfTwice, 10, a, b))
	if got := r.call(lb(struck, selfTwice, 10, a, b)); got != -99 {
		t.Errorf("the row that is not spared: retval %d", got)
	}
	r.ok(lb(struck, selfTwice, 10, a, b))
}

func TestFaultSwallow(t *testing.T) {
	v := listen(t, Options{})
	w := dialWire(t, v)
	v.Inject(Fault{Message: "nat44_ed_plugin_enable_disable", Times: 1, Swallow: true})
	w.write(w.frame(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true}, 1))
	w.write(w.frame(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true}, 2))
	payload := w.expect("nat44_ed_plugin_enable_disable_reply", 2)
	var reply nat44_ed.Nat44EdPluginEnableDisableReply
	decode(t, payload, &reply)
	if reply.Retval != vnet.RetAlreadyEnabled {
		t.Errorf("retval %d", reply.Retval)
	}
}

func TestFaultCloseMidFrame(t *testing.T) {
	v := listen(t, Options{})
	w := dialWire(t, v)
	v.Inject(Fault{Message: "nat44_show_running_config", CloseMidFrame: true})
	w.write(w.frame(&memclnt.ControlPing{}, 1))
	w.write(w.frame(&nat44_ed.Nat44ShowRunningConfig{}, 2))
	w.expect("control_ping_reply", 1)
	if _, err := w.tryRead(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read: %v, want an unexpected end", err)
	}
	if !v.Alive() {
		t.Error("vpp died")
	}
}

func TestFaultDisconnect(t *testing.T) {
	v := listen(t, Options{})
	w, other := dialWire(t, v), dialWire(t, v)
	v.Inject(Fault{Message: "nat44_show_running_config", Disconnect: true})
	w.write(w.frame(&nat44_ed.Nat44ShowRunningConfig{}, 2))
	if _, err := w.tryRead(); !errors.Is(err, io.EOF) {
		t.Errorf("read: %v, want the end", err)
	}
	other.write(other.frame(&memclnt.ControlPing{}, 1))
	other.expect("control_ping_reply", 1)
	v.DisconnectClients()
	if _, err := other.tryRead(); !errors.Is(err, io.EOF) {
		t.Errorf("read: %v, want the end", err)
	}
}

func TestFaultDelay(t *testing.T) {
	v := listen(t, Options{})
	slow, quick := dialWire(t, v), dialWire(t, v)
	remove := v.Inject(Fault{Message: "nat44_show_running_config", Delay: time.Hour})
	slow.write(slow.frame(&nat44_ed.Nat44ShowRunningConfig{}, 1))
	quick.write(quick.frame(&memclnt.ControlPing{}, 1))
	quick.expect("control_ping_reply", 1)
	remove()
	v.Inject(Fault{Message: "nat44_show_running_config", Delay: time.Millisecond})
	quick.write(quick.frame(&nat44_ed.Nat44ShowRunningConfig{}, 2))
	quick.expect("nat44_show_running_config_reply", 2)
	// Close ends the delayed request: the cleanup would hang otherwise.
}

func TestHang(t *testing.T) {
	v := listen(t, Options{})
	w := dialWire(t, v)
	v.Hang()
	v.Hang()
	w.write(w.frame(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true}, 1))
	answered := make(chan []byte, 1)
	go func() {
		payload, _ := w.tryRead()
		answered <- payload
	}()
	select {
	case <-answered:
		t.Fatal("a hanging VPP answers")
	case <-time.After(20 * time.Millisecond):
	}
	if v.Counters().Of("nat44_ed_plugin_enable_disable") != 0 {
		t.Error("a hanging VPP executes")
	}
	v.Resume()
	v.Resume()
	if payload := <-answered; payload == nil {
		t.Error("no answer after resume")
	}
	v.Hang()
	w.write(w.frame(&memclnt.ControlPing{}, 2))
	// Close ends the hang.
}

func TestFreezeMappings(t *testing.T) {
	r := newRig(t)
	if err := r.FreezeMappings(true); err != nil {
		t.Fatal(err)
	}
	row := lb(at(vip, 80), selfTwice, 10, at(backendA, 8080), at(backendB, 8080))
	if code := r.call(row); code != vnet.RetUnspecified {
		t.Errorf("lb: retval %d", code)
	}
	if code := r.call(simple(true, 0, "a")); code != vnet.RetUnspecified {
		t.Errorf("simple: retval %d", code)
	}
	if err := r.FreezeMappings(false); err != nil {
		t.Fatal(err)
	}
	r.ok(row)
}

func TestForeignRows(t *testing.T) {
	r := newRig(t)
	row := ForeignRow{
		VIP: at(vip, 80), Proto: ProtoTCP, Tag: "other client", SelfTwiceNAT: true,
		Backends: []Backend{{Addr: at(backendA, 8080), Weight: 1}, {Addr: at(backendB, 8080), Weight: 1}},
	}
	r.ResetCounters()
	for i, want := range []int32{0, vnet.RetValueExist} {
		if code, err := r.ForeignAdd(row); code != want || err != nil {
			t.Errorf("add %d: %d, %v", i, code, err)
		}
	}
	row.VIP, row.TwiceNAT = at(vip, 81), true
	if code, err := r.ForeignAdd(row); code != 0 || err != nil {
		t.Errorf("add: %d, %v", code, err)
	}
	if n := r.Counters().Mutating(); n != 0 {
		t.Errorf("%d changes counted", n)
	}
	details := dump[nat44_ed.Nat44LbStaticMappingDetails](t, r.conn, &nat44_ed.Nat44LbStaticMappingDump{})
	if len(details) != 2 || details[0].Tag != "other client" {
		t.Errorf("dump %+v", details)
	}
	r.ok(identity(true, 0, 5))
	r.ok(simple(true, 0, "a"))
	for i, want := range []int32{0, vnet.RetNoSuchEntry} {
		if code, err := r.ForeignRemove(at(vip, 80), ProtoTCP); code != want || err != nil {
			t.Errorf("remove %d: %d, %v", i, code, err)
		}
	}
	for _, key := range []struct {
		at    string
		proto uint8
	}{{"10.96.0.9:80", ProtoTCP}, {"10.0.0.7:4789", ProtoUDP}} {
		if code, err := r.ForeignRemove(parse(key.at), key.proto); code != 0 || err != nil {
			t.Errorf("remove %s: %d, %v", key.at, code, err)
		}
	}
	if rows := r.Rows(); len(rows) != 1 {
		t.Errorf("rows %q", rows)
	}
}

func TestCounters(t *testing.T) {
	r := newRig(t)
	r.ResetCounters()
	svc := at(vip, 80)
	r.ok(lb(svc, selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	r.call(lb(svc, selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	dump[nat44_ed.Nat44LbStaticMappingDetails](t, r.conn, &nat44_ed.Nat44LbStaticMappingDump{})
	c := r.Counters()
	if c.Mutating() != 2 || c.Of("nat44_add_del_lb_static_mapping") != 2 || c.Dropped() != 0 {
		t.Errorf("mutating %d:\n%s", c.Mutating(), c)
	}
	r.ResetCounters()
	if n := r.Counters().Of("nat44_add_del_lb_static_mapping"); n != 0 || c.Mutating() != 2 {
		t.Error("reset is not a reset, or the copy was no copy")
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for patience := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(patience) {
			t.Fatalf("never: %s", what)
		}
	}
}

// readyClients returns how many sockets are ready while VPP is busy.
func (v *VPP) readyClients() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	ready := 0
	for _, c := range v.clients {
		if c.ready {
			ready++
		}
	}
	return ready
}

// TestBusyVPPIsLost: 16 clients that disconnected from a busy VPP, or wait for it, keep it in its
// loop over the sockets; 15 do not.
func TestBusyVPPIsLost(t *testing.T) {
	for _, tt := range []struct {
		name      string
		dead, ask int
		workers   int
		lost      bool
	}{
		{"15 are harmless", 8, 7, 0, false},
		{"16 that disconnected", 16, 0, 0, true},
		{"16 that wait", 0, 16, 0, true},
		{"some of each", 10, 6, 0, true},
		{"with a worker packets go on", 16, 0, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := listen(t, Options{NATWorkers: tt.workers})
			first := dialWire(t, v) // idle, so it is not ready
			v.Hang()
			frame := first.frame(&memclnt.ControlPing{}, 1)
			for i := range tt.ask + tt.dead {
				conn, err := net.Dial("unix", v.Socket())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if i < tt.dead {
					_ = conn.Close()
				} else if _, err := conn.Write(frame); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "all are ready", func() bool { return v.readyClients() == tt.dead+tt.ask })
			if n := v.Accepted(); n != 1+tt.dead+tt.ask {
				t.Errorf("%d connections accepted", n)
			}
			v.Resume()
			if v.Lost() != tt.lost {
				t.Fatalf("lost = %t", v.Lost())
			}
			verdict := v.Send(Packet{Proto: ProtoUDP})
			if stopped := verdict.Reason == ErrLost.Error(); stopped != (tt.lost && tt.workers == 0) {
				t.Errorf("packet: %s", verdict)
			}
			if !tt.lost {
				first.write(frame)
				first.expect("control_ping_reply", 1)
				eventually(t, "dead clients are forgotten", func() bool { return v.readyClients() == 0 })
				return
			}
			if err := v.Restart(); err != nil {
				t.Fatal(err)
			}
			dialWire(t, v)
			if v.Lost() {
				t.Error("lost after a restart")
			}
		})
	}
}
