package healthcheck

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// claim is the wish of one service for one address.
type claim struct {
	service, address string
}

// planned holds the owner of each listen address.
type planned struct {
	owners map[netip.AddrPort]*Check
	// refused are the claims that lose or are invalid.
	refused map[claim]Problem
}

// plan decides which service owns each address. The result does not depend on the order of the
// checks.
func plan(want []Check) planned {
	p := planned{owners: map[netip.AddrPort]*Check{}, refused: map[claim]Problem{}}
	each(want, func(check *Check, text string) {
		addr, err := parseAddress(text)
		if err != nil {
			p.refused[claim{check.Service, text}] = problemOf(check, text, err)
			return
		}
		// The rule is the same as for contested frontends: the order of the list must not decide.
		if owner := p.owners[addr]; owner == nil || compareClaims(check, owner) < 0 {
			p.owners[addr] = check
		}
	})
	each(want, func(check *Check, text string) {
		addr, err := parseAddress(text)
		if err != nil {
			return
		}
		if owner := p.owners[addr]; owner.Service != check.Service {
			text = addr.String()
			p.refused[claim{check.Service, text}] = problemOf(check, text, fmt.Errorf("%w, %s", ErrContested, owner.Service))
		}
	})
	return p
}

// each visits every listen address of every check.
func each(want []Check, visit func(check *Check, address string)) {
	for i := range want {
		for _, text := range want[i].Health.GetListenAddresses() {
			visit(&want[i], text)
		}
	}
}

// parseAddress reads "ip:port". An IPv4-mapped IPv6 address counts as IPv4.
func parseAddress(text string) (netip.AddrPort, error) {
	addr, err := netip.ParseAddrPort(text)
	if err != nil || addr.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("%w: %q", ErrAddress, text)
	}
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), nil
}

// network returns the network for net.Listen. It names the family, so that a wildcard address of
// one family never takes the port of the other.
func network(addr netip.AddrPort) string {
	if addr.Addr().Is4() {
		return "tcp4"
	}
	return "tcp6"
}

// Check is the health check of one service and family.
type Check struct {
	// Service is the key of the service, "namespace/name".
	Service string
	// UID is the UID of the Service; a Problem has the same UID. It may be "".
	UID string
	// Created is the creation time of the Service in Unix seconds. It decides which of several
	// services owns an address.
	Created int64
	// Health has the listen addresses and the number of endpoints. It must not be modified after it
	// was passed to Servers.Set.
	Health *messages.HealthCheck
}

// Checks returns the health checks of a service, one per family. A nil view has none. They share
// the messages of the view.
func Checks(view *messages.ServiceView) []Check {
	var checks []Check
	for _, h := range view.GetHealthChecks() {
		checks = append(checks, Check{Service: view.GetKey(), UID: view.GetUid(), Created: view.GetCreated(), Health: h})
	}
	return checks
}

// closed returns the check of an address that is being closed: it answers that there are no
// endpoints here.
func (c *Check) closed() *Check { return &Check{Service: c.Service, UID: c.UID} }

// compareClaims orders services that claim one address; the smallest owns it. The order is total,
// so that the order of the list never matters, not even if a service claims an address twice.
func compareClaims(a, b *Check) int {
	return cmp.Or(
		cmp.Compare(a.Created, b.Created), cmp.Compare(a.Service, b.Service),
		cmp.Compare(b.Health.GetLocalEndpoints(), a.Health.GetLocalEndpoints()), cmp.Compare(a.UID, b.UID),
	)
}

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
