package simulator

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// TestManyClients: several GoVPP clients change, dump and push packets at the same time; each sees
// its own changes, and the sum is right.
func TestManyClients(t *testing.T) {
	r := newRig(t)
	const clients, rows = 4, 100
	var wg sync.WaitGroup
	for n := range clients {
		conn := connect(t, r.VPP)
		wg.Go(func() {
			for i := range rows {
				vip := netip.AddrFrom4([4]byte{10, 96, byte(n), byte(i)})
				code := retval[nat44_ed.Nat44AddDelLbStaticMappingReply](t, conn, lb(at(vip, 80), selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
				if code != 0 {
					t.Errorf("client %d row %d: retval %d", n, i, code)
				}
				if v := r.Send(tcp(clientPod, uint16(1000+i), at(vip, 80))); v.Action != Delivered || !v.NewSession {
					t.Errorf("client %d row %d: %s", n, i, v)
				}
			}
		})
	}
	wg.Wait()
	if got := dump[nat44_ed.Nat44LbStaticMappingDetails](t, r.conn, &nat44_ed.Nat44LbStaticMappingDump{}); len(got) != clients*rows {
		t.Errorf("%d rows, want %d", len(got), clients*rows)
	}
	if n := r.Counters().Of("nat44_add_del_lb_static_mapping"); n != clients*rows {
		t.Errorf("%d adds counted", n)
	}
}

// TestCrashUnderLoad: whatever the clients do, a crash ends all their connections and the next
// incarnation serves.
func TestCrashUnderLoad(t *testing.T) {
	r := bareRig(t, Options{AutoRestart: true})
	const crashes = 5
	stop := make(chan struct{})
	var served atomic.Uint64
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				served.Add(uint64(pingUntilBroken(r.VPP, stop)))
			}
		})
	}
	for n := range uint64(crashes) {
		before := served.Load()
		until(t, "clients are served", func() bool { return served.Load() > before || r.Counters().Of("control_ping") > 100*(n+1) })
		r.Crash()
		until(t, "vpp comes back", func() bool { return r.Incarnation() == n+2 })
	}
	close(stop)
	wg.Wait()
	if n, _ := r.Counters().Crashes(); n != crashes {
		t.Errorf("%d crashes", n)
	}
}

// pingUntilBroken pings over a connection of its own until it breaks or stop is closed, and returns
// how many answers came.
func pingUntilBroken(v *VPP, stop <-chan struct{}) (answers int) {
	client := socketclient.NewVppClient(v.Socket())
	replies := make(chan struct{}, 1000)
	client.SetMsgCallback(func(uint16, []byte) { replies <- struct{}{} })
	if client.Connect() != nil {
		return 0
	}
	defer func() { _ = client.Disconnect() }()
	ping := &memclnt.ControlPing{}
	id, err := client.GetMsgID(ping.GetMessageName(), ping.GetCrcString())
	if err != nil {
		return 0
	}
	for {
		if client.SendMsg(1, []byte{byte(id >> 8), byte(id), 0, 0, 0, 0, 0, 0, 0, 0}) != nil {
			return answers
		}
		select {
		case <-replies:
			answers++
		case <-stop:
			return answers
		case <-time.After(100 * time.Millisecond):
			return answers
		}
	}
}

// TestSlowReader: a client that does not read does not block the others.
func TestSlowReader(t *testing.T) {
	r := newRig(t)
	for i := range byte(200) {
		if code, err := r.ForeignAdd(ForeignRow{
			VIP: at(netip.AddrFrom4([4]byte{10, 97, 0, i}), 80), Proto: ProtoTCP,
			Backends: []Backend{{Addr: at(backendA, 1), Weight: 1}, {Addr: at(backendB, 1), Weight: 1}},
		}); code != 0 || err != nil {
			t.Fatal(code, err)
		}
	}
	lazy := dialWire(t, r.VPP)
	var stream []byte
	for i := range uint32(300) {
		stream = append(stream, lazy.frame(&nat44_ed.Nat44LbStaticMappingDump{}, i)...)
	}
	lazy.write(stream) // some 10 MB of answers
	until(t, "dumps are executed", func() bool { return r.Counters().Of("nat44_lb_static_mapping_dump") == 300 })
	r.ok(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
	for i := range uint32(300) {
		for range 200 {
			lazy.expect("nat44_lb_static_mapping_details", i)
		}
	}
}

// ExampleVPP shows a service from the API to the packet.
func ExampleVPP() {
	v := New(Options{})
	defer func() { _ = v.Close() }()
	exec := func(req api.Message) {
		if _, err := v.Exec(req); err != nil {
			fmt.Println(err)
		}
	}
	for i, pod := range []netip.Addr{clientPod, backendA} {
		if _, err := v.AddPod(fmt.Sprintf("p%d", i+1), pod); err != nil {
			fmt.Println(err)
		}
	}
	exec(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true})
	exec(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
	for _, index := range []uint32{1, 2} {
		exec(role(true, nat_types.NAT_IS_INSIDE, index))
		exec(role(true, nat_types.NAT_IS_OUTSIDE, index))
	}
	exec(lb(at(vip, 80), selfTwice, 10, at(backendA, 8080), at(backendA, 8080)))
	to := v.Send(Packet{In: "p1", Src: at(clientPod, 4000), Dst: at(vip, 80), Proto: ProtoTCP})
	fmt.Println(to)
	fmt.Println(v.Reply(to))
	// Output:
	// 10.1.1.2:4000 > 10.96.0.1:80/6 delivered on p2 as 10.1.1.2:4000 > 10.1.2.2:8080, new session 1
	// 10.1.2.2:8080 > 10.1.1.2:4000/6 delivered on p1 as 10.96.0.1:80 > 10.1.1.2:4000, session 1
}
