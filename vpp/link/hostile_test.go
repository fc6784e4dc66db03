package link

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/messages"
)

// allocated is how many bytes test allocates; other goroutines must be at rest.
func allocated(test func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	test()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// garbageCount is a message whose own count of elements promises more than the frame holds.
type garbageCount struct {
	name string
	msg  api.Message
	// at is the place of the count in the frame, behind number and context; size is its width.
	at, size int
	// want is what the error names besides the message.
	want string
}

// garbageCounts are the messages with counted arrays that the agent reads, handshake included.
func garbageCounts() []garbageCount {
	return []garbageCount{
		{"mapping", &nat44_ed.Nat44LbStaticMappingDetails{Locals: make([]nat44_ed.Nat44LbAddrPort, 2)}, 76, 4, "locals"},
		{"access list", &acl.ACLDetails{}, 68, 4, "r has 4294967295"},
		{"access lists of an interface", &acl.ACLInterfaceListDetails{Acls: []uint32{1}}, 4, 1, "acls"},
		{"route", &ip.IPRouteV2Details{Route: ip.IPRouteV2{Paths: make([]fib_types.FibPath, 1)}}, 26, 1, "route.paths"},
		{"translation", &cnat.CnatTranslationDetails{}, 32, 4, "translation.paths"},
		{"message table", &memclnt.SockclntCreateReply{}, 8, 2, "message_table"},
		{"text", &vlib.CliInbandReply{Reply: "x"}, 4, 4, "reply"},
	}
}

// frame is the frame of msg with a count of the largest value.
func (g *garbageCount) frame(vpp *fakeVPP, context uint32) []byte {
	frame := vpp.encode(g.msg, context)
	for i := range g.size {
		frame[bodyOf(g.msg.GetMessageType())+g.at+i] = 0xff
	}
	return frame
}

func TestGarbageCountCostsNoMemory(t *testing.T) {
	vpp := newFakeVPP()
	for _, tt := range garbageCounts() {
		t.Run(tt.name, func(t *testing.T) {
			in := newIncoming(tt.msg, 0)
			frame := tt.frame(vpp, 1)
			var msg api.Message
			var err error
			if n := allocated(func() { msg, err = in.decode(frame) }); n > 64<<10 {
				t.Errorf("%d bytes allocated for a frame of %d", n, len(frame))
			}
			if err == nil || !strings.Contains(err.Error(), tt.msg.GetMessageName()) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("decode = %v, %v; want an error that names %s and %s", msg, err, tt.msg.GetMessageName(), tt.want)
			}
		})
	}
}

// answerDump makes frames the answer to a dump of mappings; say encodes with the context of the
// dump.
func answerDump(vpp *fakeVPP, answer func(c *fakeConn, context uint32) [][]byte) {
	vpp.setFault(func(c *fakeConn, req api.Message, frames [][]byte) [][]byte {
		if _, dump := req.(*nat44_ed.Nat44LbStaticMappingDump); !dump {
			return frames
		}
		return answer(c, binary.BigEndian.Uint32(frames[0][2:]))
	})
}

// row is a detail of a dump of mappings.
func row() *nat44_ed.Nat44LbStaticMappingDetails {
	return &nat44_ed.Nat44LbStaticMappingDetails{ExternalPort: 1, Tag: "troupe/test", Locals: make([]nat44_ed.Nat44LbAddrPort, 5)}
}

func TestGarbageCountEndsTheConnection(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		if _, err := l.Do(t.Context(), adds(1)); err != nil {
			t.Fatal(err)
		}
		answerDump(vpp, func(_ *fakeConn, context uint32) [][]byte {
			count := garbageCounts()[0]
			return [][]byte{count.frame(vpp, context)}
		})
		got, err := ports(t, l)
		if !errors.Is(err, ErrProtocol) || !errors.Is(err, ErrUnknown) || len(got) != 0 {
			t.Errorf("dump = %v, %v", got, err)
		}
		synctest.Wait()
		if s := l.last(); s.GetUp() || !strings.Contains(s.GetReason(), "nat44_lb_static_mapping_details: locals") {
			t.Errorf("state = %v", s)
		}
		vpp.setFault(nil)
		time.Sleep(2 * time.Second)
		if got, err := ports(t, l); err != nil || len(got) != 1 {
			t.Errorf("dump of the next connection = %v, %v", got, err)
		}
	})
}

// TestDumpWithoutEnd: details that never end, fast or slow, end the connection, and the requests of
// other callers have unknown outcomes.
func TestDumpWithoutEnd(t *testing.T) {
	tests := []struct {
		name   string
		cfg    Config
		pause  time.Duration
		within time.Duration
		err    error
		want   string
	}{
		{"slow", Config{}, 100 * time.Millisecond, 31 * time.Second, ErrTimeout, "nat44_lb_static_mapping_dump is not complete after 30s"},
		{"fast", Config{MaxDumpDetails: 1000}, time.Microsecond, time.Second, ErrTooLarge, "nat44_lb_static_mapping_dump: more than 1000 details"},
		{"large", Config{MaxDumpBytes: 10000}, time.Microsecond, time.Second, ErrTooLarge, "nat44_lb_static_mapping_dump: more than 10000 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, tt.cfg, func(t *testing.T, vpp *fakeVPP, l *running) {
				if _, err := l.Do(t.Context(), adds(1)); err != nil {
					t.Fatal(err)
				}
				answerDump(vpp, func(c *fakeConn, context uint32) [][]byte {
					for since := time.Now(); time.Since(since) < 160*time.Second; time.Sleep(tt.pause) {
						select {
						case <-c.closed:
							return nil
						default:
						}
						// VPP answers no other request meanwhile, as this
						// is the goroutine that serves the connection
						c.vpp.mu.Unlock()
						c.send([][]byte{vpp.encode(row(), context)})
						c.vpp.mu.Lock()
					}
					return nil
				})
				began := time.Now()
				got, err := ports(t, l)
				if took := time.Since(began); took > tt.within || len(got) != 0 || !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("dump = %v, %v after %s; want %v within %s", got, err, took, tt.err, tt.within)
				}
				synctest.Wait()
				if s := l.last(); s.GetUp() || !strings.Contains(s.GetReason(), tt.want) {
					t.Errorf("state = %v", s)
				}
			})
		})
	}
}

// TestHonestTablesAreWithinTheLimits: the largest tables that nodes have can be read with the
// default limits.
func TestHonestTablesAreWithinTheLimits(t *testing.T) {
	cfg, vpp := Config{}.withDefaults(), newFakeVPP()
	for _, tt := range []struct {
		name string
		n    int
		msg  api.Message
	}{
		{"routes", 1_000_000, &ip.IPRouteV2Details{Route: ip.IPRouteV2{Paths: make([]fib_types.FibPath, 1)}}},
		{"mappings with 100 backends", 100_000, &nat44_ed.Nat44LbStaticMappingDetails{Locals: make([]nat44_ed.Nat44LbAddrPort, 100)}},
		{"sessions", 1_000_000, &nat44_ed.Nat44UserSessionV3Details{}},
	} {
		if size := len(vpp.encode(tt.msg, 0)) * tt.n; size > cfg.MaxDumpBytes || tt.n > cfg.MaxDumpDetails {
			t.Errorf("%d %s have %d bytes, the limits are %d and %d", tt.n, tt.name, size, cfg.MaxDumpDetails, cfg.MaxDumpBytes)
		}
	}
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		if _, err := l.Do(t.Context(), adds(1)); err != nil {
			t.Fatal(err)
		}
		const rows = 100_000
		answerDump(vpp, func(c *fakeConn, context uint32) (frames [][]byte) {
			for range rows {
				frames = append(frames, vpp.encode(row(), context))
			}
			return frames
		})
		if got, err := ports(t, l); err != nil || len(got) != rows {
			t.Errorf("dump has %d rows, error %v", len(got), err)
		}
	})
}

// TestPagesWithoutEnd: pages that are empty and whose cursor never repeats end the connection too.
func TestPagesWithoutEnd(t *testing.T) {
	tests := []struct {
		name   string
		cfg    Config
		pause  time.Duration
		within time.Duration
		err    error
	}{
		{"slow", Config{}, 100 * time.Millisecond, 31 * time.Second, ErrTimeout},
		{"fast", Config{MaxDumpDetails: 1000}, 0, time.Second, ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, tt.cfg, func(t *testing.T, vpp *fakeVPP, l *running) {
				cursor := uint32(0)
				vpp.setFault(func(_ *fakeConn, req api.Message, frames [][]byte) [][]byte {
					if _, get := req.(*nat44_ed.Nat44EdOutputInterfaceGet); !get || cursor > 1600 {
						return frames
					}
					time.Sleep(tt.pause)
					cursor++
					reply := &nat44_ed.Nat44EdOutputInterfaceGetReply{Retval: retvalAgain, Cursor: cursor}
					return [][]byte{vpp.encode(reply, binary.BigEndian.Uint32(frames[0][2:]))}
				})
				began := time.Now()
				_, err := outputs(t, l, 0)
				if took := time.Since(began); took > tt.within || !errors.Is(err, tt.err) || !strings.Contains(err.Error(), "nat44_ed_output_interface_get") {
					t.Errorf("pages = %v after %s; want %v within %s", err, took, tt.err, tt.within)
				}
				synctest.Wait()
				if s := l.last(); s.GetUp() {
					t.Errorf("state = %v", s)
				}
			})
		})
	}
}

// TestGarbageLength: a frame header with a length that no message of VPP has ends the connection
// with the reason, before memory is allocated.
func TestGarbageLength(t *testing.T) {
	tests := []struct {
		name      string
		length    uint32
		handshake bool
		want      string
	}{
		{"4 GB", 0xffffffff, false, "frame of 4294967295 bytes"},
		{"4 GB in the handshake", 0xffffffff, true, "frame of 4294967295 bytes"},
		{"above the limit", 16<<20 + 1, false, "frame of 16777217 bytes"},
		{"nothing", 0, false, "frame of 0 bytes"},
		{"nothing in the handshake", 0, true, "0 bytes"},
		{"one byte", 1, false, "frame of 1 bytes"},
		{"ASCII", 0x48545450, false, "frame of 1213486160 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vpp := newFakeVPP()
			path := filepath.Join(t.TempDir(), "api.sock")
			server := listen(t, vpp, path)
			server.setLength(tt.length, tt.handshake)
			var reason *messages.LinkState
			allocated := allocated(func() {
				_, states, stop := connectTo(t, Config{Socket: path, ReplyTimeout: 3 * time.Second})
				reason = await(t, states, "down because of "+tt.want, func(s *messages.LinkState) bool { return strings.Contains(s.GetReason(), tt.want) })
				stop()
			})
			if allocated > 64<<20 {
				t.Errorf("%d bytes allocated", allocated)
			}
			if reason.GetUp() {
				t.Errorf("state = %v", reason)
			}
			server.mangle.Store(nil)
			_, states, _ := connectTo(t, Config{Socket: path})
			await(t, states, "up when VPP answers as it should", isUp)
		})
	}
}
