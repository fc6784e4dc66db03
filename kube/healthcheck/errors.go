package healthcheck

import "errors"

var (
	// ErrContested means that another service owns the address: the older one, then the one with
	// the smaller key. The text names it.
	ErrContested = errors.New("the address belongs to another service")
	// ErrAddress means a listen address that is not "ip:port".
	ErrAddress = errors.New("not an address and a port")
)
