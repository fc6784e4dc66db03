package simulator

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/codec"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
)

// rawClient is a client that speaks the protocol byte by byte.
type rawClient struct {
	t     *testing.T
	conn  net.Conn
	r     *bufio.Reader
	ids   map[string]uint16
	index uint32
}

// dialWire connects and shakes hands.
func dialWire(t *testing.T, v *VPP) *rawClient {
	t.Helper()
	conn, err := net.Dial("unix", v.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	w := &rawClient{t: t, conn: conn, r: bufio.NewReader(conn), ids: map[string]uint16{"sockclnt_create": model.IDSockclntCreate}}
	hello := w.frame(&memclnt.SockclntCreate{Name: "wire"}, 0)
	binary.BigEndian.PutUint32(hello[model.FrameHeaderSize+2:], 123)
	w.write(hello)
	payload := w.read()
	if id := binary.BigEndian.Uint16(payload); id != model.IDSockclntCreateReply {
		t.Fatalf("handshake answered with id %d", id)
	}
	if ctx := binary.BigEndian.Uint32(payload[6:]); ctx != 123 {
		t.Errorf("context %d is not echoed", ctx)
	}
	var reply memclnt.SockclntCreateReply
	if err := codec.DecodeMsg(payload, &reply); err != nil {
		t.Fatal(err)
	}
	if reply.Response != 0 || int(reply.Count) != len(reply.MessageTable) || reply.Index&clientIndexBit == 0 {
		t.Errorf("handshake: response %d, count %d, index %#x", reply.Response, reply.Count, reply.Index)
	}
	w.index = reply.Index
	for _, e := range reply.MessageTable {
		w.ids[e.Name[:len(e.Name)-9]] = e.Index
	}
	return w
}

// frame encodes a request with garbage in the parts of the header that no receiver reads.
func (w *rawClient) frame(msg api.Message, context uint32) []byte {
	w.t.Helper()
	payload, err := codec.EncodeMsg(msg, w.ids[msg.GetMessageName()])
	if err != nil {
		w.t.Fatal(err)
	}
	if msg.GetMessageType() == api.RequestMessage {
		binary.BigEndian.PutUint32(payload[2:], w.index)
		binary.BigEndian.PutUint32(payload[6:], context)
	}
	return frameOf(payload)
}

// frameOf wraps a payload.
func frameOf(payload []byte) []byte {
	frame := []byte("\xde\xad\xbe\xef\xca\xfe\xba\xbe\x00\x00\x00\x00\xff\xff\xff\xff")
	binary.BigEndian.PutUint32(frame[8:], uint32(len(payload)))
	return append(frame, payload...)
}

func (w *rawClient) write(b []byte) {
	w.t.Helper()
	if _, err := w.conn.Write(b); err != nil {
		w.t.Fatal(err)
	}
}

// read returns the payload of the next frame.
func (w *rawClient) read() []byte {
	w.t.Helper()
	payload, err := w.tryRead()
	if err != nil {
		w.t.Fatal(err)
	}
	return payload
}

func (w *rawClient) tryRead() ([]byte, error) {
	var header [model.FrameHeaderSize]byte
	if _, err := io.ReadFull(w.r, header[:]); err != nil {
		return nil, err
	}
	payload := make([]byte, binary.BigEndian.Uint32(header[8:]))
	_, err := io.ReadFull(w.r, payload)
	return payload, err
}

// expect reads one message and checks what it is.
func (w *rawClient) expect(name string, context uint32) []byte {
	w.t.Helper()
	payload := w.read()
	if id := binary.BigEndian.Uint16(payload); id != w.ids[name] {
		w.t.Fatalf("got id %d, want %s (%d)", id, name, w.ids[name])
	}
	if got := binary.BigEndian.Uint32(payload[2:]); got != context {
		w.t.Fatalf("%s: context %#x, want %#x", name, got, context)
	}
	return payload
}

func TestTableListsEverything(t *testing.T) {
	w := dialWire(t, listen(t, Options{}))
	for _, name := range []string{
		"control_ping", "control_ping_reply", "sw_interface_event", "nat44_add_del_lb_static_mapping",
		"nat44_lb_static_mapping_details", "cnat_translation_update", "ip_route_lookup_v2_reply", "show_version",
	} {
		if w.ids[name] == 0 {
			t.Errorf("%s is not in the table", name)
		}
	}
	if w.ids["sockclnt_create_reply"] != model.IDSockclntCreateReply {
		t.Errorf("sockclnt_create_reply has id %d", w.ids["sockclnt_create_reply"])
	}
}

func TestWithoutPlugin(t *testing.T) {
	v := listen(t, Options{WithoutPlugins: []string{"nat44_ed"}})
	w := dialWire(t, v)
	if _, ok := w.ids["nat44_show_running_config"]; ok {
		t.Error("message of a plugin that is not loaded")
	}
	conn := connect(t, v)
	if err := conn.Invoke(timeout(t), &nat44_ed.Nat44ShowRunningConfig{}, &nat44_ed.Nat44ShowRunningConfigReply{}); err == nil {
		t.Error("no error for a message that VPP does not know")
	}
	if _, err := v.Exec(&nat44_ed.Nat44ShowRunningConfig{}); !errors.Is(err, ErrUnknownMessage) {
		t.Errorf("exec: %v", err)
	}
}

func TestFramesInPieces(t *testing.T) {
	w := dialWire(t, listen(t, Options{}))
	var stream []byte
	const n = 50
	for i := range uint32(n) {
		stream = append(stream, w.frame(&memclnt.ControlPing{}, 1000+i)...)
	}
	for _, piece := range []int{1, 3, 16, 17, 26, len(stream)} {
		for rest := stream; len(rest) > 0; {
			k := min(piece, len(rest))
			w.write(rest[:k])
			rest = rest[k:]
		}
		for i := range uint32(n) {
			w.expect("control_ping_reply", 1000+i)
		}
	}
}

func TestGarbageIsIgnored(t *testing.T) {
	v := listen(t, Options{})
	w := dialWire(t, v)
	lb := w.frame(&nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: true}, 1)
	foreign := w.frame(&memclnt.ControlPing{}, 2)
	binary.BigEndian.PutUint32(foreign[model.FrameHeaderSize+2:], 0x80001234)
	route := w.frame(&ip.IPRouteAddDel{IsAdd: true}, 4)
	route[len(route)-1] = 200 // n_paths
	for name, frame := range map[string][]byte{
		"empty payload":        frameOf(nil),
		"half an id":           frameOf([]byte{1}),
		"unknown id":           frameOf([]byte{0xff, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0}),
		"id only":              frameOf(w.frame(&memclnt.ControlPing{}, 3)[model.FrameHeaderSize : model.FrameHeaderSize+2]),
		"reply instead":        frameOf([]byte{0, model.IDSockclntCreateReply, 0, 0, 0, 0, 0, 0, 0, 0}),
		"short for its fields": frameOf(lb[model.FrameHeaderSize : len(lb)-1]),
		"short for its paths":  route,
		"unknown client index": foreign,
		"an event as request":  frameOf(binary.BigEndian.AppendUint16(nil, w.ids["sw_interface_event"])),
	} {
		before := v.Counters().Dropped()
		w.write(frame)
		w.write(w.frame(&memclnt.ControlPing{}, 77))
		w.expect("control_ping_reply", 77)
		if got := v.Counters().Dropped() - before; got != 1 {
			t.Errorf("%s: %d frames dropped", name, got)
		}
	}
}

func TestLongerThanNeededIsFine(t *testing.T) {
	w := dialWire(t, listen(t, Options{}))
	payload := append(w.frame(&memclnt.ControlPing{}, 5)[model.FrameHeaderSize:], "trailing"...)
	w.write(frameOf(payload))
	w.expect("control_ping_reply", 5)
}

func TestReplyGoesToTheNamedClient(t *testing.T) {
	v := listen(t, Options{})
	a, b := dialWire(t, v), dialWire(t, v)
	a.index = b.index
	a.write(a.frame(&memclnt.ControlPing{}, 9))
	b.expect("control_ping_reply", 9)
}

func TestSockclntDelete(t *testing.T) {
	v := listen(t, Options{})
	for _, name := range []string{"sockclnt_delete", "sockclnt_delete_reply"} {
		w := dialWire(t, v)
		w.ids["sockclnt_delete"] = w.ids[name]
		w.write(w.frame(&memclnt.SockclntDelete{Index: 42}, 6))
		payload := w.expect("sockclnt_delete_reply", 6)
		if code := int32(binary.BigEndian.Uint32(payload[6:])); code != -1 {
			t.Errorf("%s of an unknown client: %d", name, code)
		}
		w.ids["sockclnt_delete"] = w.ids[name]
		w.write(w.frame(&memclnt.SockclntDelete{Index: w.index}, 7))
		payload = w.read()
		if code := binary.BigEndian.Uint32(payload[6:]); code != 1 {
			t.Errorf("%s: response %d, want 1", name, code)
		}
		if _, err := w.tryRead(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: connection is not closed: %v", name, err)
		}
	}
	until(t, "clients are forgotten", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return len(v.clients) == 0
	})
}

func TestDumpIsDetailsAndNothingElse(t *testing.T) {
	v := listen(t, Options{})
	w := dialWire(t, v)
	w.write(w.frame(&nat44_ed.Nat44LbStaticMappingDump{}, 1))
	w.write(w.frame(&memclnt.ControlPing{}, 2))
	w.expect("control_ping_reply", 2)
	for i := range byte(3) {
		if _, err := v.ForeignAdd(ForeignRow{VIP: at(vip, uint16(i)), Proto: 6, Backends: []Backend{{}, {}}}); err != nil {
			t.Fatal(err)
		}
	}
	w.write(w.frame(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true}, 3))
	w.expect("nat44_ed_plugin_enable_disable_reply", 3)
	for i := range uint16(3) {
		row := ForeignRow{VIP: at(vip, i), Proto: 6, Backends: []Backend{{Addr: at(backendA, 1)}, {Addr: at(backendB, 1)}}}
		if code, err := v.ForeignAdd(row); code != 0 || err != nil {
			t.Fatal(code, err)
		}
	}
	w.write(w.frame(&nat44_ed.Nat44LbStaticMappingDump{}, 4))
	w.write(w.frame(&memclnt.ControlPing{}, 5))
	for range 3 {
		w.expect("nat44_lb_static_mapping_details", 4)
	}
	w.expect("control_ping_reply", 5)
}

// decode decodes a payload that must be well-formed.
func decode(t *testing.T, payload []byte, msg api.Message) {
	t.Helper()
	if err := codec.DecodeMsg(payload, msg); err != nil {
		t.Fatal(err)
	}
}

// parse parses an endpoint.
func parse(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func TestSubscriptionEndsWithTheClient(t *testing.T) {
	v := listen(t, Options{})
	w := dialWire(t, v)
	w.write(w.frame(&interfaces.WantInterfaceEvents{EnableDisable: 1}, 1))
	w.expect("want_interface_events_reply", 1)
	w.write(w.frame(&interfaces.CreateLoopback{}, 2))
	w.expect("create_loopback_reply", 2)
	w.expect("sw_interface_event", w.index)
	_ = w.conn.Close()
	until(t, "subscription ends", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return len(v.inc.model.Subscribers) == 0
	})
}

func TestConnectAndPing(t *testing.T) {
	v := listen(t, Options{})
	conn := connect(t, v)
	pong := invoke[memclnt.ControlPingReply](t, conn, &memclnt.ControlPing{})
	if pong.VpePID != v.inc.pid || pong.VpePID == 0 {
		t.Errorf("pid %d in ping, %d from Go", pong.VpePID, v.inc.pid)
	}
	version := invoke[vpe.ShowVersionReply](t, conn, &vpe.ShowVersion{})
	if version.Version != "25.10-release" {
		t.Errorf("version %q", version.Version)
	}
	cfg := invoke[nat44_ed.Nat44ShowRunningConfigReply](t, conn, &nat44_ed.Nat44ShowRunningConfig{})
	if cfg.Sessions != 0 {
		t.Errorf("plugin is enabled at start")
	}
}

// TestEveryRequestIsAnswered: no request of the table leaves a client waiting, whatever it is,
// except those that kill VPP or that have no reply.
func TestEveryRequestIsAnswered(t *testing.T) {
	v := New(Options{})
	t.Cleanup(func() { _ = v.Close() })
	silent := map[string]bool{"cnat_translation_update": true}
	for _, name := range v.catalog.Names {
		m := v.catalog.Named(name)
		if !m.Request || silent[name] {
			continue
		}
		replies, err := v.Exec(m.Empty())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Reply != nil && len(replies) == 0 {
			t.Errorf("%s: no reply", name)
		}
	}
}

// TestObserve: requests of clients are observed in their order, with their class, and without
// requests that were lost on the way.
func TestObserve(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	r := bareRig(t, Options{Observe: func(req api.Message, changes bool) {
		mu.Lock()
		defer mu.Unlock()
		if name := req.GetMessageName(); strings.HasPrefix(name, "nat44") {
			seen = append(seen, map[bool]string{true: "change ", false: "read "}[changes]+name)
		}
	}})
	r.enableNAT()
	dump[nat44_ed.Nat44LbStaticMappingDetails](t, r.conn, &nat44_ed.Nat44LbStaticMappingDump{})
	if _, err := r.Exec(&nat44_ed.Nat44LbStaticMappingDump{}); err != nil { // without a connection
		t.Error(err)
	}
	r.Inject(Fault{Message: "nat44_forwarding_enable_disable", Disconnect: true})
	// the caller does not learn that its answer will not come
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := r.conn.Invoke(ctx, &nat44_ed.Nat44ForwardingEnableDisable{}, &nat44_ed.Nat44ForwardingEnableDisableReply{}); err == nil {
		t.Error("there was an answer")
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{
		"change nat44_ed_plugin_enable_disable", "change nat44_forwarding_enable_disable", "change nat44_add_del_address_range",
		"read nat44_lb_static_mapping_dump",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
}
