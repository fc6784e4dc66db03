package nat44_test

import (
	"fmt"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	aclapi "go.fd.io/govpp/binapi/acl"

	"github.com/troupe-vpp/troupe/actors/render/rendertest"
)

// TestListsRest: VPP takes long for access lists. Repeated changes are made together, rows that
// need no list do not wait for it, and in the end everything is as wanted.
func TestListsRest(t *testing.T) {
	withServices(t, []string{"a/a", "b/b", "c/c"}, func(s scene) {
		s.Begin(1, "a/a", "b/b", "c/c")
		s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.Serve("b/b", 1, "10.0.0.2")
		s.Serve("c/c", 1)
		s.Run(time.Second)
		lists := 0
		s.VPP.After = func(req api.Message) {
			if _, list := req.(*aclapi.ACLAddReplace); list {
				lists++
				s.Sim.Sleep(25*time.Millisecond, nil)
			}
		}
		const changes = 20
		for i := range uint64(changes) {
			s.Send(rendertest.RenderMessage(2+i, guarded("a/a", []string{fmt.Sprintf("192.0.%d.0/24", 100+i)}, "10.0.0.1")))
			s.Run(40 * time.Millisecond)
			if i == changes/2 {
				s.Serve("c/c", 2, "10.0.0.3")
				s.Run(40 * time.Millisecond)
				s.expect("while access lists rest", "10.0.0.1:80/6", "10.0.0.2:80/6", "10.0.0.3:80/6")
			}
		}
		if lists == 0 || lists > changes/2 { // two lists each time: one for each kind of interface
			t.Errorf("%d changes of access lists for %d changes of a service", lists, changes)
		}
		s.Run(30 * time.Second)
		s.settled("after the rest", "a/a", "b/b", "c/c")
		if s.reaches("uplink0", "192.0.100.7", "10.0.0.1") || !s.reaches("uplink0", fmt.Sprintf("192.0.%d.7", 99+changes), "10.0.0.1") {
			t.Errorf("VPP has\n%s", s.lists())
		}
	})
}

// TestChurnDelaysNoRemoval: a service changes its ranges all the time, and VPP takes long for
// access lists. Another one whose ranges are gone is served.
func TestChurnDelaysNoRemoval(t *testing.T) {
	withServices(t, []string{"a/a", "b/b"}, func(s scene) {
		s.Begin(1, "a/a", "b/b")
		s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.Render(1, guarded("b/b", []string{"192.0.2.0/24"}, "10.0.0.2"))
		s.Run(time.Second)
		s.VPP.After = func(req api.Message) {
			if _, list := req.(*aclapi.ACLAddReplace); list {
				s.Sim.Sleep(5*time.Millisecond, nil)
			}
		}
		churn := func(i int) {
			v := guarded("a/a", []string{fmt.Sprintf("%d.%d.%d.0/24", 11+i*7%200, i*13%251, i%256)}, "10.0.0.1")
			v.Frontends[0].Backends[0].Port = uint32(8000 + i%100)
			s.Send(rendertest.RenderMessage(uint64(2+i), v))
			s.Run(time.Millisecond)
		}
		for i := range 200 {
			churn(i)
		}
		s.Send(rendertest.RenderMessage(2, rendertest.Forwarding("b/b", 1, "10.0.0.2")))
		for i := range 600 {
			churn(200 + i)
		}
		if !s.reaches("uplink0", "198.51.100.7", "10.0.0.2") || s.State("b/b") != rendertest.InSync {
			t.Errorf("b/b was acknowledged %v, VPP has\n%s", s.State("b/b"), s.lists())
		}
	})
}

// TestTheRestEndsWithTheConnection: another VPP gets its access lists at once.
func TestTheRestEndsWithTheConnection(t *testing.T) {
	withServices(t, []string{"a/a"}, func(s scene) {
		s.Begin(1, "a/a")
		s.VPP.After = func(req api.Message) {
			if _, list := req.(*aclapi.ACLAddReplace); list {
				s.Sim.Sleep(time.Second, nil)
			}
		}
		s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.Run(5 * time.Second)
		s.VPP.After = nil
		s.Crash()
		s.Reconnect(2)
		s.Run(10 * time.Millisecond)
		s.settled("another VPP", "a/a")
	})
}
