package probe

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// VPP connects a simulated VPP with an uplink ("uplink0", 192.168.16.1/24, with the default route) and four pods ("pod2" to "pod5", 10.1.1.2 to
// 10.1.1.5). It is closed at the end of the test.
func (s *Stage) VPP() *virtual.Stream {
	stream := virtual.New(s.Sim, s.connectPods, nil)
	s.Cleanup(func() {
		if err := stream.VPP.Close(); err != nil {
			s.Error(err)
		}
	})
	return stream
}

// connectPods is the topology of every new VPP.
func (s *Stage) connectPods(v *simulator.VPP) {
	_, err := v.AddInterface("uplink0", []netip.Prefix{netip.MustParsePrefix("192.168.16.1/24")}, true)
	err = errors.Join(err, v.DefaultRoute("uplink0", netip.MustParseAddr("192.168.16.254")))
	for i := byte(2); i <= 5; i++ {
		_, e := v.AddPod(fmt.Sprint("pod", i), netip.AddrFrom4([4]byte{10, 1, 1, i}))
		err = errors.Join(err, e)
	}
	if err != nil {
		s.Error(err)
	}
}
