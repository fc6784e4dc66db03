package cnat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testNode is a simulated VPP with an uplink and two pods, with the wanted and the recorded state.
type testNode struct {
	testing.TB
	vpp   *simulator.VPP
	link  *link.Link
	state *State
	want  *Want
}

// newNode makes a node without rows.
func newNode(t testing.TB) *testNode {
	t.Helper()
	n := &testNode{TB: t, vpp: simulator.New(simulator.Options{}), want: onNode.Want()}
	if err := n.vpp.Listen(filepath.Join(t.TempDir(), "api.sock")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.vpp.Close() })
	up, err := n.vpp.AddInterface("up", []netip.Prefix{netip.MustParsePrefix("2001:db8::1/64")}, true)
	n.want.Interfaces[up] = &Tables{Outside: true}
	for _, pod := range []string{"1", "2"} {
		index, failed := n.vpp.AddPod("pod"+pod, netip.MustParseAddr("fd00:1::"+pod))
		err = errors.Join(err, failed)
		n.want.Interfaces[index] = &Tables{}
	}
	if err = errors.Join(err, n.vpp.DefaultRoute("up", netip.MustParseAddr("2001:db8::fe"))); err != nil {
		t.Fatal(err)
	}
	n.connect(n.vpp.Socket())
	return n
}

// connect connects the link of the test, and reads VPP.
func (n *testNode) connect(socket string) {
	n.Helper()
	n.link = link.New(link.Config{Socket: socket}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	connected, ended := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(ended)
		_ = n.link.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				connected <- struct{}{}
			}
		})
	}()
	n.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-connected:
	case <-time.After(10 * time.Second):
		n.Fatal("not connected")
	}
	n.read()
}

// row returns the wanted row of a key; nil = none.
func (n *testNode) row(key rule.Key) *Row {
	if r, found := n.want.Rows[key]; found {
		return &r
	}
	return nil
}

// read reads VPP as a driver does.
func (n *testNode) read() {
	n.Helper()
	state, err := Read(context.Background(), n.link, n.want.IPv4, slices.Collect(maps.Keys(n.want.Interfaces)), nil)
	if err != nil {
		n.Fatal(err)
	}
	state.Inherit(n.state, n.row)
	state.Assume(n.want)
	n.state = state
}

// serve wants the rows of a plan from now on.
func (n *testNode) serve(frontends ...*messages.Frontend) {
	clear(n.want.Rows)
	plan := Plan(&messages.ServiceView{Key: "default/web", Frontends: frontends}, onNode)
	for _, r := range plan.Rows {
		n.want.Rows[r.Key] = r
	}
	n.want.Targets = remoteOf(plan.Remote).Targets()
}

// settle makes VPP hold what is wanted, and returns the operations and the number of messages.
func (n *testNode) settle() (done []string, sent int) {
	n.Helper()
	left := Diff(n.state, n.want, true)
	for range 2 { // a new address of 26.06 loses the tables
		for _, r := range Apply(context.Background(), n.link, left) {
			if r.Err != nil || r.Unknown {
				n.Errorf("%s: %v, unknown %t", r.Op, r.Err, r.Unknown)
			}
			n.state.Record(r.Op)
			done, sent = append(done, r.Op.Describe()), sent+r.Messages
		}
		left = Diff(n.state, n.want, true)
	}
	if len(left) > 0 {
		n.Errorf("after the operations: %s", left)
	}
	return done, sent
}

// TestPackets: from, to => arrives at, translated how.
func TestPackets(t *testing.T) {
	n := newNode(t)
	const tcp, udp = messages.Protocol_TCP, messages.Protocol_UDP
	n.serve(
		serving("fd00:96::1", 80, tcp, "fd00:1::2#8080*"),
		serving("fd00:96::1", 53, udp, "fd00:2::1#53"),
		serving("fd00:96::2", 80, tcp, "fd00:1::1#8080*"),
		with(serving("2001:db8::1", 30080, tcp, "fd00:1::2#8080*"), nodePort),
		with(serving("2001:db8::1", 30081, tcp, "fd00:2::1#8080"), nodePort),
		with(serving("2001:db8:9::1", 80, tcp, "fd00:2::1#8080"), loadBalancer),
	)
	n.settle()
	for _, c := range []struct {
		in, from, to string
		proto        uint8
		want         string
	}{
		{"pod1", "[fd00:1::1]:4000", "[fd00:96::1]:80", 6, "pod2 [fd00:1::1]:4000 > [fd00:1::2]:8080"},
		{"pod1", "[fd00:1::1]:4000", "[fd00:96::1]:53", 17, "up [fd00:1::1]:4000 > [fd00:2::1]:53"},
		{"pod1", "[fd00:1::1]:4000", "[fd00:96::2]:80", 6, "pod1 [fd00:1::ffff:ffff:ffff:fffe]:49152 > [fd00:1::1]:8080"},
		{"pod1", "[fd00:1::1]:4000", "[fd00:96::1]:81", 6, "dropped"},
		{"pod1", "[fd00:1::1]:4001", "[2001:db8::1]:30080", 6, "pod2 [fd00:1::1]:4001 > [fd00:1::2]:8080"},
		{"up", "[2001:db8:5::9]:5000", "[2001:db8::1]:30080", 6, "pod2 [2001:db8:5::9]:5000 > [fd00:1::2]:8080"},
		{"up", "[2001:db8:5::9]:5000", "[2001:db8::1]:30081", 6, "up [fd00:1::ffff:ffff:ffff:fffe]:49153 > [fd00:2::1]:8080"},
		{"up", "[2001:db8:5::9]:5001", "[2001:db8:9::1]:80", 6, "up [fd00:1::ffff:ffff:ffff:fffe]:49154 > [fd00:2::1]:8080"},
		{"up", "[2001:db8:5::9]:5000", "[2001:db8::1]:22", 6, "local"},
		// of another host
		{"pod1", "[fd00:1::1]:4000", "[2001:db8:9::1]:22", 6, "up [fd00:1::1]:4000 > [2001:db8:9::1]:22"},
		{"up", "[2001:db8:5::9]:5000", "[2001:db8:6::9]:80", 6, "up [2001:db8:5::9]:5000 > [2001:db8:6::9]:80"},
		{"pod1", "[fd00:1::1]:4000", "[fd00:1::2]:80", 6, "pod2 [fd00:1::1]:4000 > [fd00:1::2]:80"},
		{"up", "[2001:db8:5::9]:0", "[fd00:96::1]:0", 58, "dropped"},
	} {
		v := n.vpp.Send(simulator.Packet{In: c.in, Src: netip.MustParseAddrPort(c.from), Dst: netip.MustParseAddrPort(c.to), Proto: c.proto})
		got := v.Action.String()
		if v.Action == simulator.Delivered {
			got = fmt.Sprintf("%s %s > %s", v.Out, v.Src, v.Dst)
			if back := n.vpp.Reply(v); back.Out != c.in || back.Src.String() != c.to || back.Dst.String() != c.from {
				t.Errorf("%s to %s: the answer is %s", c.from, c.to, back)
			}
		}
		if got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

// TestLeastMessages: the operations of each change, and their number of messages.
func TestLeastMessages(t *testing.T) {
	t.Run("simulator", func(t *testing.T) { leastMessages(t, newNode(t)) })
	t.Run("real VPP", func(t *testing.T) {
		binary, plugins, why := realvpp.Find()
		if why != "" {
			t.Skip(why)
		}
		n := &testNode{TB: t, want: onNode.Want()}
		n.connect(realvpp.Start(t, binary, plugins).Socket())
		loopback := &interfaces.CreateLoopback{}
		if _, err := n.link.Do(t.Context(), []api.Message{loopback, loopback, loopback}); err != nil {
			t.Fatal(err)
		}
		n.want.Interfaces = map[uint32]*Tables{1: {Outside: true}, 2: {}, 3: {}}
		leastMessages(t, n)
	})
}

func leastMessages(t *testing.T, n *testNode) {
	const tcp = messages.Protocol_TCP
	backend := []netip.AddrPort{netip.MustParseAddrPort("[fd00:1::1]:80")}
	theirs := rowMessage(&Row{Key: rule.Key{Addr: netip.MustParseAddr("fd00:96::66"), Port: 80, Proto: 6}, Backends: backend}, false)
	theirs.Translation.Paths[0].Flags = 0
	earlier := rowMessage(&Row{Key: rule.Key{Addr: netip.MustParseAddr("2001:db8:7::1"), Port: 80, Proto: 6}, Backends: backend}, false)
	if _, err := n.link.Do(t.Context(), []api.Message{theirs, earlier}); err != nil {
		t.Fatal(err)
	}
	// nodes of an interface; messages for another address, with the operations that follow it
	const marked, remark = 1 + 1 + 2, "mark the settings of CNAT, " // a network with its mark, the marks of address and tables
	nodes, anew, moved := 2, 1+2+1, remark+"replace sources by 0.0.0.0 and fd00:1::77, as Kubernetes does, mark the settings of CNAT"
	address := "keep sources on the way to 1 networks more, 0 fewer, replace sources by 0.0.0.0 and fd00:1::ffff:ffff:ffff:fffe, as Kubernetes does"
	if n.read(); n.state.Newer {
		nodes, anew = 4, 3+marked+3*3
		moved = "replace sources by 0.0.0.0 and fd00:1::77, as Kubernetes does, keep sources on the way to 1 networks more, 0 fewer, " +
			"attach CNAT to interface 1, attach CNAT to interface 2 of the host, attach CNAT to interface 3 of a pod"
		address = "replace sources by 0.0.0.0 and fd00:1::ffff:ffff:ffff:fffe, as Kubernetes does, keep sources on the way to 1 networks more, 0 fewer"
	}
	for _, step := range []struct {
		name   string
		change func()
		sent   int
		done   string
	}{
		{
			"start", func() { n.read(); n.serve(serving("fd00:96::1", 80, tcp, "fd00:1::1#80*")) }, 2 + marked + 3*(3+nodes) + 2,
			address + ", attach CNAT to interface 1, attach CNAT to interface 2 of a pod, " +
				"attach CNAT to interface 3 of a pod, put translation [fd00:96::1]:80/TCP -> 1 backends, delete translation [2001:db8:7::1]:80/TCP",
		},
		{"nothing", func() {}, 0, ""},
		{
			"another endpoint", func() { n.serve(serving("fd00:96::1", 80, tcp, "fd00:1::1#80*", "fd00:1::2#80*")) }, 1,
			"put translation [fd00:96::1]:80/TCP -> 2 backends",
		},
		{
			"affinity", func() { n.serve(with(serving("fd00:96::1", 80, tcp, "fd00:1::1#80*", "fd00:1::2#80*"), sticky)) }, 2,
			"delete translation [fd00:96::1]:80/TCP, replaced: affinity changed, put translation [fd00:96::1]:80/TCP -> 2 backends",
		},
		{
			"maglev", func() { n.serve(with(serving("fd00:96::1", 80, tcp, "fd00:1::1#80*", "fd00:1::2#80*"), consistent)) }, 2,
			"delete translation [fd00:96::1]:80/TCP, replaced: affinity changed, put translation [fd00:96::1]:80/TCP -> 2 backends",
		},
		{"a drift check", func() { n.read() }, 0, ""},
		{"a new agent", func() { n.state = nil; n.read() }, 0, ""},
		{"an interface of the host", func() { n.want.Interfaces[2] = &Tables{Host: true} }, 3, "attach CNAT to interface 2 of the host"},
		{
			"another SNAT address", func() { n.want.SNAT[1] = netip.MustParseAddr("fd00:1::77") }, anew,
			moved,
		},
		{
			"an endpoint on another node", func() { n.serve(serving("fd00:96::1", 80, tcp, "8000::#80")) }, 2*128 + 2 + 2,
			"keep sources on the way to 128 networks more, 1 fewer, delete translation [fd00:96::1]:80/TCP, replaced: how connections are spread has changed, put translation [fd00:96::1]:80/TCP -> 1 backends",
		},
		{"another drift check", func() { n.read() }, 0, ""},
		{"a newer agent", func() { n.state = nil; n.read() }, 0, ""},
		{
			"the endpoint comes to this node", func() { n.serve(serving("fd00:96::1", 80, tcp, "8000::#80*")) }, 2 * 129,
			"keep sources on the way to 1 networks more, 128 fewer",
		},
		{"an interface goes", func() { n.want.Interfaces[2] = nil }, 3 + nodes, "detach CNAT from interface 2"},
		{"the last endpoint goes", func() { n.serve() }, 1, "delete translation [fd00:96::1]:80/TCP"},
	} {
		step.change()
		done, sent := n.settle()
		if text := strings.Join(done, ", "); sent != step.sent || text != step.done {
			t.Errorf("%s: %d messages, want %d: %s", step.name, sent, step.sent, text)
		}
	}
	n.read()
	if len(n.state.Rows) != 1 {
		t.Errorf("the translation of another client of VPP is gone: %v", n.state.Rows)
	}
	n.serve(serving("fd00:96::66", 80, tcp, "fd00:1::2#80*"))
	if done, _ := n.settle(); len(done) > 0 {
		t.Errorf("the translation of another client of VPP is replaced: %s", done)
	}
}

// TestEndsWhereWanted: any state becomes any other one, after any part of the operations.
func TestEndsWhereWanted(t *testing.T) {
	n := newNode(t)
	rapid.Check(t, func(t *rapid.T) {
		clear(n.want.Rows)
		for _, vip := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"fd00:96::1", "fd00:96::2", "2001:db8::1"}), rapid.ID).Draw(t, "addresses") {
			for port := range uint16(rapid.IntRange(0, 3).Draw(t, "ports")) {
				r := Row{Key: rule.Key{Addr: netip.MustParseAddr(vip), Port: 80 + port, Proto: 6}, RealIP: vip == "2001:db8::1", Sticky: rapid.Bool().Draw(t, "sticky")}
				r.Maglev = !r.Sticky && rapid.Bool().Draw(t, "maglev")
				for _, i := range rapid.SliceOfNDistinct(rapid.Uint16Range(1, 9), 0, 5, rapid.ID).Draw(t, "backends") {
					r.Backends = append(r.Backends, netip.AddrPortFrom(netip.MustParseAddr("fd00:1::1"), i))
				}
				slices.SortFunc(r.Backends, netip.AddrPort.Compare)
				n.want.Rows[r.Key] = r
			}
		}
		ops := Diff(n.state, n.want, true)
		for _, r := range Apply(context.Background(), n.link, ops[:rapid.IntRange(0, len(ops)).Draw(t, "done")]) {
			n.state.Record(r.Op)
		}
		if rapid.Bool().Draw(t, "restart") {
			n.state = nil
		}
		n.read()
		done, _ := n.settle()
		n.read()
		if left := Diff(n.state, n.want, true); len(left) > 0 {
			t.Fatalf("VPP differs: %s, after %s", left, done)
		}
	})
}

// withoutPolicy is a VPP that does not know the policy of Kubernetes.
type withoutPolicy struct {
	link.Caller
	addresses int
}

func (v *withoutPolicy) Do(ctx context.Context, msgs []api.Message) ([]link.Result, error) {
	for _, msg := range msgs {
		if name := msg.GetMessageName(); name == "cnat_set_snat_policy" {
			return []link.Result{{Err: link.ErrUnsupported}}, nil
		} else if name == "cnat_set_snat_addresses" {
			v.addresses++
		}
	}
	return v.Caller.Do(ctx, msgs)
}

// TestNoAddressWithoutPolicy: VPP would replace the source of everything that leaves.
func TestNoAddressWithoutPolicy(t *testing.T) {
	n := newNode(t)
	vpp := &withoutPolicy{Caller: n.link}
	results := Apply(t.Context(), vpp, Diff(n.state, n.want, true))
	for _, r := range results {
		if r.Op.Verb == SetSNAT && !errors.Is(r.Err, link.ErrUnsupported) || vpp.addresses > 0 {
			t.Errorf("%v, the address was set %d times", r.Err, vpp.addresses)
		}
	}
}

// TestRefused: a refusal of VPP is the error of its operation, and nothing else is lost.
func TestRefused(t *testing.T) {
	n := newNode(t)
	key := rule.Key{Addr: netip.MustParseAddr("fd00:96::1"), Port: 80, Proto: 6}
	good := &Row{Key: key, Backends: []netip.AddrPort{netip.MustParseAddrPort("[fd00:1::1]:80")}}
	results := Apply(t.Context(), n.link, []Op{
		{Verb: Attach, Interface: 99, Tables: Tables{}},
		{Verb: PutRow, Key: key, Row: &Row{Key: key}}, // would crash VPP
		{Verb: DelRow, Key: key, ID: 7},
		{Verb: PutRow, Key: key, Row: good},
	})
	for i, want := range []error{ErrNoInterface, link.ErrRefused, nil, nil} {
		if r := results[i]; !errors.Is(r.Err, want) || r.Unknown != (i == 0) {
			t.Errorf("%s: %v, unknown %t", r.Op, r.Err, r.Unknown)
		}
	}
	n.vpp.Crash()
	for _, r := range Apply(t.Context(), n.link, []Op{{Verb: Attach, Interface: 1}, {Verb: PutRow, Key: key, Row: good}}) {
		if !errors.Is(r.Err, link.ErrNotSent) && !r.Unknown {
			t.Errorf("%s: %v", r.Op, r.Err)
		}
	}
	if _, err := Read(t.Context(), n.link, false, nil, nil); err == nil {
		t.Error("a VPP that has crashed is read")
	}
}
