package link

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime/metrics"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
)

// fuzzConnection is a connection that waits for answers to a mapping, a version, a dump with its
// ping, a page, a text, and three dumps of messages with counted arrays, contexts 0 to 11. Nothing
// runs.
func fuzzConnection(t testing.TB, registry *registry) (*connection, []*call, *fakeVPP) {
	vpp := newFakeVPP()
	cfg := Config{MaxDumpDetails: 10}.withDefaults()
	s := newConnection(&cfg, vpp.adapter(), registry, quietLog())
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	var calls []*call
	wait := func(ends bool, reqs ...api.Message) {
		c := newCall(len(reqs))
		c.left = len(reqs)
		calls = append(calls, c)
		for i, req := range reqs {
			r, err := s.route(req)
			if err != nil {
				t.Fatal(err)
			}
			s.enter(pending{call: c, index: i, route: r, room: 20, sent: time.Now(), ends: ends && i == len(reqs)-1})
		}
	}
	wait(false, add(1))
	wait(false, &vpe.ShowVersion{})
	wait(true, &nat44_ed.Nat44InterfaceDump{}, &memclnt.ControlPing{})
	wait(false, &nat44_ed.Nat44EdOutputInterfaceGet{})
	wait(false, &vlib.CliInband{Cmd: "show version"})
	wait(true, &nat44_ed.Nat44LbStaticMappingDump{}, &memclnt.ControlPing{})
	wait(true, &acl.ACLDump{}, &memclnt.ControlPing{})
	wait(true, &ip.IPRouteV2Dump{}, &memclnt.ControlPing{})
	return s, calls, vpp
}

// fuzzFrames are an answer for every context of fuzzConnection, and answers that count more than
// they have.
func fuzzFrames(vpp *fakeVPP) (frames [][]byte) {
	for _, answer := range []struct {
		context uint32
		msg     api.Message
	}{
		{0, &nat44_ed.Nat44AddDelLbStaticMappingReply{Retval: -81}},
		{1, &vpe.ShowVersionReply{Version: "25.10"}},
		{2, &nat44_ed.Nat44InterfaceDetails{SwIfIndex: 3}},
		{3, &memclnt.ControlPingReply{VpePID: 1}},
		{4, &nat44_ed.Nat44EdOutputInterfaceDetails{}},
		{4, &nat44_ed.Nat44EdOutputInterfaceGetReply{}},
		{5, &vlib.CliInbandReply{Reply: "vpp v25.10"}},
		{6, row()},
		{7, &memclnt.ControlPingReply{VpePID: 1}},
		{8, &acl.ACLDetails{R: make([]acl_types.ACLRule, 2)}},
		{10, &ip.IPRouteV2Details{Route: ip.IPRouteV2{Paths: make([]fib_types.FibPath, 1)}}},
	} {
		frames = append(frames, vpp.encode(answer.msg, answer.context))
	}
	contexts := map[string]uint32{"mapping": 6, "access list": 8, "route": 10, "text": 5}
	for _, count := range garbageCounts() {
		if context, waits := contexts[count.name]; waits {
			frames = append(frames, count.frame(vpp, context))
		}
	}
	return frames
}

// heap is how many bytes were allocated so far, by all goroutines.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// FuzzReceive feeds arbitrary frames, each with a length of one byte before it: whatever VPP sends,
// the callback neither panics nor blocks, it allocates no more than frames can carry, and the table
// stays consistent.
func FuzzReceive(f *testing.F) {
	registry := newRegistry()
	_, _, vpp := fuzzConnection(f, registry)
	var all []byte
	for _, frame := range fuzzFrames(vpp) {
		frame = frame[:min(len(frame), 255)]
		f.Add(append([]byte{byte(len(frame))}, frame...))
		all = append(append(all, byte(len(frame))), frame...)
	}
	f.Add(all)
	f.Add([]byte{0, 1, 0, 5, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, calls, _ := fuzzConnection(t, registry)
		before, size := heap(), len(data)
		for len(data) > 0 {
			n := min(int(data[0]), len(data)-1)
			frame := data[1 : 1+n]
			data = data[1+n:]
			var id [2]byte
			copy(id[:], frame)
			s.receive(binary.BigEndian.Uint16(id[:]), frame)
		}
		if after := heap(); after-before > 1<<20+64*uint64(size) {
			t.Fatalf("%d bytes allocated for %d", after-before, size)
		}
		waiting := 0
		for i := range s.queue.n {
			if !s.queue.get(s.queue.base + uint32(i)).done {
				waiting++
			}
		}
		left := 0
		for _, c := range calls {
			left += c.left
			if len(c.details) > 10 {
				t.Fatalf("%d details kept", len(c.details))
			}
		}
		if waiting != left {
			t.Fatalf("%d entries wait, calls wait for %d", waiting, left)
		}
		if s.queue.n > 0 && s.queue.oldest().done {
			t.Fatal("answered entry at the front")
		}
	})
}

// FuzzFrames cuts an arbitrary stream into frames: each is at most as long as the stream and the
// limit, and the stream ends with an error.
func FuzzFrames(f *testing.F) {
	stream := func(length uint32, data ...byte) []byte {
		var header [headerBytes]byte
		binary.BigEndian.PutUint32(header[lengthAt:], length)
		return append(header[:], data...)
	}
	f.Add(append(stream(3, 1, 2, 3), stream(2, 1, 2)...))
	for _, length := range []uint32{0, 1, 2, 255, readBuffer, readBuffer + 1, maxFrame, maxFrame + 1, 1 << 31, 1<<32 - 1} {
		f.Add(stream(length, 1, 2, 3))
	}
	f.Add(stream(0)[:headerBytes-1])
	buf := make([]byte, readBuffer)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newSocket("")
		s.input = bufio.NewReader(bytes.NewReader(data))
		for rest := len(data); ; {
			frame, err := s.next(buf)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrProtocol) {
					t.Fatal(err)
				}
				return
			}
			if rest -= headerBytes + len(frame); rest < 0 || len(frame) < 2 {
				t.Fatalf("frame of %d bytes, %d left", len(frame), rest)
			}
		}
	})
}
