package healthcheck

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
)

// Problem says that a service has no health check on one of its addresses, or that this is over.
type Problem struct {
	// Service is the key of the service, UID is the UID of its object.
	Service, UID string
	// Port is spec.healthCheckNodePort.
	Port uint32
	// Address is "ip:port", or the text that is no such address.
	Address string
	// Err is the reason: errors.Is finds ErrContested, ErrAddress or the error of the listener. nil
	// means that the problem is over.
	Err error
	// Withdrawn is true when the problem is over because the service does not want the address any
	// more. Otherwise the address is served now.
	Withdrawn bool
}

// problemOf returns the problem of a check at one of its addresses.
func problemOf(check *Check, address string, err error) Problem {
	return Problem{Service: check.Service, UID: check.UID, Port: check.Health.GetPort(), Address: address, Err: err}
}

// report passes problems that changed since the last report to the log and to OnProblem.
func (s *Servers) report() {
	now := maps.Clone(s.refused)
	served := map[claim]bool{}
	for addr, p := range s.ports {
		check := p.check.Load()
		c := claim{check.Service, addr.String()}
		at, err := p.state()
		served[c] = at != nil
		if err != nil {
			now[c] = problemOf(check, c.address, err)
		}
	}
	for _, c := range slices.SortedFunc(keysOf(s.reported, now), compareClaim) {
		before, was := s.reported[c]
		p, is := now[c]
		switch {
		case !is:
			before.Err, before.Withdrawn = nil, !served[c]
			s.log.Info("health check problem is over", "svc", c.service, "address", c.address, "withdrawn", before.Withdrawn)
			s.cfg.OnProblem(before)
		case !was || before.Err.Error() != p.Err.Error():
			s.log.Warn("health check not served, retrying", "svc", c.service, "address", c.address, "err", p.Err)
			s.cfg.OnProblem(p)
		}
	}
	s.reported = now
	s.publish()
}

// keysOf visits the keys of both maps, each once.
func keysOf(a, b map[claim]Problem) iter.Seq[claim] {
	return func(yield func(claim) bool) {
		for c := range a {
			if !yield(c) {
				return
			}
		}
		for c := range b {
			if _, seen := a[c]; !seen && !yield(c) {
				return
			}
		}
	}
}

// compareClaim orders problems by service and address.
func compareClaim(a, b claim) int {
	return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.address, b.address))
}

var (
	// ErrContested means that another service owns the address: an older one, or one of the same
	// age with a smaller key. The text names it.
	ErrContested = errors.New("the address belongs to another service")
	// ErrAddress means that a listen address is not "ip:port".
	ErrAddress = errors.New("not an address and a port")
)
