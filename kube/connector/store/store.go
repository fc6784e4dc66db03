package store

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/kube/service"
)

// Store holds the Services and EndpointSlices: an API or a Files.
type Store interface {
	// Run lists and watches until ctx ends, and returns nil then. changed is called after the first
	// complete list and after each change, by any goroutine; it must not block.
	Run(ctx context.Context, changed func()) error
	// Observe returns the objects in the namespace, which are only read, and the policy for
	// addresses. ok is false until everything has been listed once.
	Observe() (seen render.Observed, policy catalog.Policy, ok bool)
	// Trouble returns the reason why the store does not see the objects; "" if it sees them or has
	// not begun.
	Trouble() string
	// Write carries out one write. It returns the written Service, whose UID goes into the owner
	// reference of the slices; nil if it wrote a slice. The error is a *WriteError if the store
	// gave an answer.
	Write(ctx context.Context, w render.Write) (*corev1.Service, error)
}

// Config of a store.
type Config struct {
	// Namespace of the objects. It is never created.
	Namespace string
	// Policy is the configured part of the policy, beside the ServiceCIDR and Node objects.
	Policy catalog.Policy
	// Directory of a Files. It must exist.
	Directory string
	// Pool has the cluster IPs of a Files; at most one network of each family.
	Pool []netip.Prefix
}

// WriteError is a write that the store refused.
type WriteError struct {
	// Reason is the class of the refusal, which decides what to do next.
	Reason WriteReason
	// Err is the answer of the store.
	Err error
}

// WriteReason is a class of refusals, fit for a counter.
type WriteReason string

// The reasons.
const (
	// An unobserved object has the name: observe and compare again.
	WriteExists WriteReason = "exists"
	// The object has changed or is gone: observe and compare again.
	WriteConflict    WriteReason = "conflict"
	WriteInvalid     WriteReason = "invalid"     // the same object will be refused again
	WriteForbidden   WriteReason = "forbidden"   // the connector lacks a permission
	WriteUnavailable WriteReason = "unavailable" // no answer, or too many requests: try again
)

// Error satisfies error.
func (e *WriteError) Error() string { return fmt.Sprintf("%s: %v", e.Reason, e.Err) }

// Unwrap satisfies errors.Unwrap.
func (e *WriteError) Unwrap() error { return e.Err }

// Do carries out the writes of one service in order. It stops at the first failure, or when ctx
// ends, and returns the number of writes. Slices of a Service that is created here get it as their
// owner.
func Do(ctx context.Context, to Store, work render.Work) (made int, err error) {
	var created *corev1.Service
	for _, w := range work.Writes {
		if err := ctx.Err(); err != nil {
			return made, err
		}
		if w.Slice != nil && created != nil {
			w.Slice = render.Own(w.Slice, created)
		}
		service, err := to.Write(ctx, w)
		if err != nil {
			return made, err
		}
		if w.Verb == render.Create && w.Service != nil {
			created = service
		}
		made++
	}
	return made, nil
}

// addNode adds the addresses of a node and of its pods to a policy: instances must not have them.
func addNode(p *catalog.Policy, n *corev1.Node) {
	for _, a := range n.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil { // others are names
			p.Nodes = append(p.Nodes, addr.Unmap())
		}
	}
	p.Pods = append(p.Pods, service.Networks(n.Spec.PodCIDRs)...)
}
