package actors_test

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// refuse makes VPP refuse messages.
func (s *story) refuse(message, times string) {
	n, err := strconv.Atoi(times)
	if err != nil {
		s.Fatalf("%s: %v", s.line, err)
	}
	s.world.VPP.Inject(simulator.Fault{Message: message, Retval: -1, Times: n})
}

// healed waits for what the healer counts.
func (s *story) healed(part, step, times string) {
	s.world.Await(s.line, func() bool {
		page := actorstest.Ask[*health.Page](s.world, address.Healer, &health.Query{})
		return strconv.FormatUint(page.Counts[part][step], 10) == times
	})
}

// iface adds an interface.
func (s *story) iface(name string) {
	inside, err := s.plane.addInterface(name)
	if err != nil {
		s.Fatalf("%s: %v", s.line, err)
	}
	s.aliases[name] = inside
}

// net adds an interface with its addresses.
func (s *story) net(args []string) {
	s.iface(args[0])
	for _, text := range args[1:] {
		if err := s.plane.behind(args[0], text); err != nil {
			s.Fatalf("%s: %v", s.line, err)
		}
	}
}

// unreachable adds a route that answers with ICMP.
func (s *story) unreachable(network string) {
	if err := s.plane.unreachable(netip.MustParsePrefix(network)); err != nil {
		s.Fatalf("%s: %v", s.line, err)
	}
}

// attach gives a pod an interface, "" takes it away.
func (s *story) attach(pod, name string) {
	var request any = &interfaces.Attach{Pod: pod, Interface: cmp.Or(s.aliases[name], name)}
	if name == "" {
		request = &interfaces.Detach{Pod: pod}
	}
	if result := s.ask(request); result.Err != nil {
		s.Errorf("%s: %v", s.line, result.Err)
	}
}

// denied expects that a pod does not get an interface.
func (s *story) denied(pod, name, why string) {
	result := s.ask(&interfaces.Attach{Pod: pod, Interface: name})
	if result.Err == nil || !strings.Contains(strings.ReplaceAll(result.Err.Error(), " ", "-"), why) {
		s.Errorf("%s: %v", s.line, result.Err)
	}
}

// roles looks at VPP.
func (s *story) roles(name, want string) {
	if got := hasRoles(s.world, name); got != (want == "yes") {
		s.Errorf("%s: VPP says %t", s.line, got)
	}
}

// ask gives the interfaces actor a command.
func (s *story) ask(request any) *command.Result {
	return actorstest.Ask[*command.Result](s.world, address.Interfaces, request)
}
