package server

import (
	"fmt"
	"net"
	"syscall"
)

// credentials are the user and process of the peer of a unix socket (SO_PEERCRED); "" = unknown.
func credentials(c *net.UnixConn) string {
	raw, err := c.SyscallConn()
	if err != nil {
		return ""
	}
	who := ""
	err = raw.Control(func(fd uintptr) {
		if peer, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			who = fmt.Sprintf("uid %d, pid %d", peer.Uid, peer.Pid)
		}
	})
	if err != nil {
		return ""
	}
	return who
}
