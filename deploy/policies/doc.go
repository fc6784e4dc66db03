// Package policies holds admission policies of Kubernetes that keep tenants apart where Troupe
// cannot, see docs/security.md. It has no code besides its tests.
package policies
