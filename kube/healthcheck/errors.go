package healthcheck

import "errors"

var (
	// ErrContested means that another service owns the address: an older one, or one of the same
	// age with a smaller key. The text names it.
	ErrContested = errors.New("the address belongs to another service")
	// ErrAddress means that a listen address is not "ip:port".
	ErrAddress = errors.New("not an address and a port")
)
