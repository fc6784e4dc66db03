package service

import "errors"

var (
	// ErrNodePortAddresses means a value for the node-port addresses that is none of: nothing, "primary" alone, "all" alone, a list of CIDRs.
	ErrNodePortAddresses = errors.New("invalid node port addresses")
	// ErrFrontendText means a text that is not "ip:port/PROTO".
	ErrFrontendText = errors.New("invalid frontend")
)
