package healthcheck

import (
	"cmp"

	"github.com/troupe-vpp/troupe/messages"
)

// Check is the health check of one service and family.
type Check struct {
	// Service is its key, "namespace/name".
	Service string
	// UID of the Service, handed back in a Problem; may be "".
	UID string
	// Created is the creation time of the Service in Unix seconds; it decides which service owns a
	// contested address.
	Created int64
	// Health has the listen addresses and the number of endpoints. It must not be modified once
	// Servers.Set has it.
	Health *messages.HealthCheck
}

// Checks returns the health checks of a service, one per family; none for a nil view. They share
// the messages of the view.
func Checks(view *messages.ServiceView) []Check {
	var checks []Check
	for _, h := range view.GetHealthChecks() {
		checks = append(checks, Check{Service: view.GetKey(), UID: view.GetUid(), Created: view.GetCreated(), Health: h})
	}
	return checks
}

// closed returns what a service answers on an address that is being closed: no endpoints here.
func (c *Check) closed() *Check { return &Check{Service: c.Service, UID: c.UID} }

// compareClaims orders services that claim one address; the smallest owns it. The rest of the order
// matters only for a service that claims an address twice, which must not depend on the order of
// the list either.
func compareClaims(a, b *Check) int {
	return cmp.Or(
		cmp.Compare(a.Created, b.Created), cmp.Compare(a.Service, b.Service),
		cmp.Compare(b.Health.GetLocalEndpoints(), a.Health.GetLocalEndpoints()), cmp.Compare(a.UID, b.UID),
	)
}
