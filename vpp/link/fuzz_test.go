package link

import (
	"encoding/binary"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vpe"
)

// fuzzSession is a session that waits for answers to a mapping, a version, a dump with its ping and a page, contexts 0 to 4. Nothing runs.
func fuzzSession(t testing.TB, registry *registry) (*session, []*call, *fakeVPP) {
	vpp := newFakeVPP()
	cfg := Config{MaxDumpDetails: 10}.withDefaults()
	s := newSession(&cfg, vpp.adapter(), registry, quietLog())
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
			s.enter(pending{call: c, index: i, route: r, bytes: 20, sent: time.Now(), ends: ends && i == len(reqs)-1})
		}
	}
	wait(false, add(1))
	wait(false, &vpe.ShowVersion{})
	wait(true, &nat44_ed.Nat44InterfaceDump{}, &memclnt.ControlPing{})
	wait(false, &nat44_ed.Nat44EdOutputInterfaceGet{})
	return s, calls, vpp
}

// FuzzReceive feeds arbitrary frames, each with a length of one byte before it: whatever VPP sends, the callback neither panics nor
// blocks, and the table stays consistent.
func FuzzReceive(f *testing.F) {
	registry := newRegistry()
	_, _, vpp := fuzzSession(f, registry)
	var all []byte
	for context, msg := range []api.Message{
		&nat44_ed.Nat44AddDelLbStaticMappingReply{Retval: -81}, &vpe.ShowVersionReply{Version: "25.10"},
		&nat44_ed.Nat44InterfaceDetails{SwIfIndex: 3}, &memclnt.ControlPingReply{VpePID: 1}, &nat44_ed.Nat44EdOutputInterfaceDetails{},
		&nat44_ed.Nat44EdOutputInterfaceGetReply{},
	} {
		frame := vpp.encode(msg, uint32(min(context, 4)))
		frame = frame[:min(len(frame), 255)]
		f.Add(append([]byte{byte(len(frame))}, frame...))
		all = append(append(all, byte(len(frame))), frame...)
	}
	f.Add(all)
	f.Add([]byte{0, 1, 0, 5, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, calls, _ := fuzzSession(t, registry)
		for len(data) > 0 {
			n := min(int(data[0]), len(data)-1)
			frame := data[1 : 1+n]
			data = data[1+n:]
			var id [2]byte
			copy(id[:], frame)
			s.receive(binary.BigEndian.Uint16(id[:]), frame)
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
