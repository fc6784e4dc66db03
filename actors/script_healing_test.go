package actors

import (
	"context"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// refuse has VPP refuse messages.
func (s *story) refuse(message, times string) {
	n, err := strconv.Atoi(times)
	if err != nil {
		s.Fatalf("%s: %v", s.line, err)
	}
	s.world.vpp.Inject(simulator.Fault{Message: message, Retval: -1, Times: n})
}

// healed waits for what the healer counts.
func (s *story) healed(part, rung, times string) {
	s.world.until(s.line, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		answer, err := s.world.system.Ask(ctx, PathHealer, &HealingQuery{})
		return err == nil && strconv.FormatUint(answer.(*HealingPage).Counts[part][rung], 10) == times
	})
}

// iface adds an interface.
func (s *story) iface(name string) {
	if _, err := s.world.vpp.AddInterfaceSpec(simulator.InterfaceSpec{Name: name, Up: true}); err != nil {
		s.Fatalf("%s: %v", s.line, err)
	}
}

// attach gives a pod an interface, "" takes it away.
func (s *story) attach(pod, name string) {
	var command any = &AttachPod{Pod: pod, Interface: name}
	if name == "" {
		command = &DetachPod{Pod: pod}
	}
	if result := s.world.command(command); result.Err != nil {
		s.Errorf("%s: %v", s.line, result.Err)
	}
}

// denied expects that a pod does not get an interface.
func (s *story) denied(pod, name, why string) {
	result := s.world.command(&AttachPod{Pod: pod, Interface: name})
	if result.Err == nil || !strings.Contains(strings.ReplaceAll(result.Err.Error(), " ", "-"), why) {
		s.Errorf("%s: %v", s.line, result.Err)
	}
}

// roles looks at VPP.
func (s *story) roles(name, want string) {
	if got := s.world.roles(name); got != (want == "yes") {
		s.Errorf("%s: VPP says %t", s.line, got)
	}
}
