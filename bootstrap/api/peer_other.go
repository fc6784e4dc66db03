//go:build !linux

package api

import "net"

// credentials are unknown on systems without SO_PEERCRED.
func credentials(*net.UnixConn) string { return "" }
