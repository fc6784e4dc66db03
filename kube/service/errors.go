package service

import "errors"

var (
	// ErrNodePortAddresses means that the value is not allowed for the node-port addresses. Allowed
	// are an empty list, "all" alone, and a list of "primary" and CIDRs.
	ErrNodePortAddresses = errors.New("invalid node port addresses")
	// ErrFrontendText means a text that is not "ip:port/PROTO".
	ErrFrontendText = errors.New("invalid frontend")
)
