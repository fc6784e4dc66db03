package service

import "errors"

var (
	// ErrNodePortAddresses means a value for the node-port addresses other than nothing, "all"
	// alone, or a list of "primary" and CIDRs.
	ErrNodePortAddresses = errors.New("invalid node port addresses")
	// ErrFrontendText means a text that is not "ip:port/PROTO".
	ErrFrontendText = errors.New("invalid frontend")
)
