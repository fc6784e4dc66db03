package interfaces

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/messages"
)

// counted is what VPP has counted.
type counted map[uint32]bool

func (c counted) Read(context.Context) (map[uint32]bool, error) { return maps.Clone(c), nil }

// TestOtherProtocolsAreSeen: a second after VPP has received a packet that is not TCP, UDP or ICMP,
// the renderers are told, and without such packets nothing is read or sent again.
func TestOtherProtocolsAreSeen(t *testing.T) {
	perform(t, func(s *stage) {
		seen := counted{}
		s.config.OtherProtocols = seen
		s.Kill() // the next incarnation looks
		s.connected()
		s.tell(nodeWith("web 10.1.1.2"))
		s.Run(time.Minute)
		lists, generation := s.lists, s.set().GetGeneration()
		pod := named(s.set(), "pod2")
		if pod.GetOtherProtocols() != "" {
			t.Fatalf("without such packets: %v", pod)
		}
		s.Run(5 * time.Second)
		if s.lists != lists || s.set().GetGeneration() != generation {
			t.Errorf("%d more discoveries without such packets", s.lists-lists)
		}
		seen[pod.GetSwIfIndex()] = true
		s.Run(protocolsInterval + 100*time.Millisecond)
		if pod = named(s.set(), "pod2"); pod.GetOtherProtocols() == "" {
			t.Error("the renderers are not told")
		}
		s.Forget()
		s.Kill()
		s.Run(5 * time.Second)
		for _, told := range s.Heard(address.Renderer("nat44")) {
			if set, is := told.(*messages.InterfaceSet); is && named(set, "pod2").GetOtherProtocols() == "" {
				t.Errorf("after a restart the renderers are told that there are no such packets: %v", set)
			}
		}
	})
}
