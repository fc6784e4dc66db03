package healthcheck

import (
	"maps"
	"net/netip"
	"slices"
)

// Status is the state of the servers at one moment.
type Status struct {
	// Applied counts the calls of Set that have taken effect. A call that was overtaken counts when
	// the later call takes effect.
	Applied uint64
	// Ports are the addresses that a service owns, ordered.
	Ports []PortStatus
	// Problems are the problems reported to OnProblem that are not over, ordered by service and
	// address.
	Problems []Problem
}

// PortStatus is one listen address.
type PortStatus struct {
	// Address is the listen address.
	Address netip.AddrPort
	// Service owns the address.
	Service string
	// LocalEndpoints is the number of local endpoints in the answers.
	LocalEndpoints uint32
	// Listening is false while the address cannot be opened.
	Listening bool
}

// Status returns the current state. Any goroutine may ask.
func (s *Servers) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// publish makes the current state visible to Status. The slices are not modified afterwards.
func (s *Servers) publish() {
	ports := make([]PortStatus, 0, len(s.ports))
	for addr, p := range s.ports {
		check := p.check.Load()
		ports = append(ports, PortStatus{
			Address: addr, Service: check.Service, LocalEndpoints: check.Health.GetLocalEndpoints(), Listening: p.server != nil,
		})
	}
	slices.SortFunc(ports, func(a, b PortStatus) int { return a.Address.Compare(b.Address) })
	var problems []Problem
	for _, c := range slices.SortedFunc(maps.Keys(s.reported), compareClaim) {
		problems = append(problems, s.reported[c])
	}
	s.mu.Lock()
	s.status = Status{Applied: s.applied, Ports: ports, Problems: problems}
	s.mu.Unlock()
}
