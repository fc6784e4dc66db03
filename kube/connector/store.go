package connector

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
)

// Store holds the Services and EndpointSlices: the API server, or a directory.
type Store interface {
	// Run lists and watches until ctx ends, and returns nil then. changed is called after the first
	// complete list and after each change, by any goroutine; it must not block.
	Run(ctx context.Context, changed func()) error
	// Observe returns the objects in the namespace, which are only read, and the policy for
	// addresses. ok is false before all of it was listed once.
	Observe() (seen render.Observed, policy catalog.Policy, ok bool)
	// Trouble is why it does not see the objects; "" = it does, or has not begun.
	Trouble() string
	// Write makes one write, and returns the Service that it wrote, if it was one: its UID is in
	// the owner reference of the slices. The error is a *WriteError where the store gave an answer.
	Write(ctx context.Context, w render.Write) (*corev1.Service, error)
}

// WriteError is a write that the store refused.
type WriteError struct {
	// Reason is what follows from it.
	Reason WriteReason
	// Err is the answer.
	Err error
}

// WriteReason is a class of refusals, fit for a counter.
type WriteReason string

// The reasons.
const (
	// an object has the name that was not observed: observe, and compare anew
	WriteExists WriteReason = "exists"
	// the object has changed or is gone: observe, and compare anew
	WriteConflict    WriteReason = "conflict"
	WriteInvalid     WriteReason = "invalid"     // the same object will be refused again
	WriteForbidden   WriteReason = "forbidden"   // a right is missing
	WriteUnavailable WriteReason = "unavailable" // no answer, or too many requests: try again
)

// Error satisfies error.
func (e *WriteError) Error() string { return fmt.Sprintf("%s: %v", e.Reason, e.Err) }

// Unwrap satisfies errors.Unwrap.
func (e *WriteError) Unwrap() error { return e.Err }
