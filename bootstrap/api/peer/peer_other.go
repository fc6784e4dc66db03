//go:build !linux

package peer

import "net"

// credentials are unknown on systems without SO_PEERCRED.
func credentials(*net.UnixConn) string { return "" }
