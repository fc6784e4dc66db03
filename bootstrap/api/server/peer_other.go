//go:build !linux

package server

import "net"

// credentials are unknown on systems without SO_PEERCRED.
func credentials(*net.UnixConn) string { return "" }
