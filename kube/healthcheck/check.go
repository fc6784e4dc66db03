package healthcheck

import (
	"cmp"

	"github.com/troupe-vpp/troupe/messages"
)

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
