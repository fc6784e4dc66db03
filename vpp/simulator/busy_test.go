package simulator

import (
	"net"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/memclnt"
)

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
