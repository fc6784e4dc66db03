package service

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// problemSource is the source of the problems found here. Problems of the input keep their source.
const problemSource = "kubernetes"

// report adds a problem with a field of the Service to the view.
func (r *resolver) report(field, message string) {
	r.view.Errors = append(r.view.Errors, &messages.ObjectError{
		Source: problemSource, Kind: "Service", Object: r.in.GetKey(), Field: field, Message: message,
	})
}

// badEndpoints adds one problem for all unusable addresses of a slice. It names the smallest one,
// so that the text does not depend on their order.
func (r *resolver) badEndpoints(slice *messages.EndpointSlice, unusable []string) {
	r.view.Errors = append(r.view.Errors, &messages.ObjectError{
		Source: problemSource, Kind: "EndpointSlice", Object: slice.GetNamespace() + "/" + slice.GetName(), Field: "endpoints.addresses",
		Message: fmt.Sprintf("%d unusable for family %s, for example %q", len(unusable), slice.GetFamily(), slices.Min(unusable)),
	})
}

// sortErrors puts problems into an order that does not depend on the order of the input.
func sortErrors(problems []*messages.ObjectError) {
	slices.SortFunc(problems, func(a, b *messages.ObjectError) int {
		return cmp.Or(
			cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetObject(), b.GetObject()),
			cmp.Compare(a.GetField(), b.GetField()),
			cmp.Compare(a.GetMessage(), b.GetMessage()),
			cmp.Compare(a.GetSource(), b.GetSource()),
		)
	})
}

var (
	// ErrNodePortAddresses means that the value is not allowed for the node-port addresses. Allowed
	// are an empty list, "all" alone, and a list of "primary" and CIDRs.
	ErrNodePortAddresses = errors.New("invalid node port addresses")
	// ErrFrontendText means a text that is not "ip:port/PROTO".
	ErrFrontendText = errors.New("invalid frontend")
)
