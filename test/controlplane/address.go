package controlplane

import (
	"net"
	"testing"
)

// FreeAddress returns an address of loopback whose port a server of the test can listen at. For a
// minute the kernel gives the port to no other socket that lets it choose: a connection that ended
// there is in the state TIME_WAIT, which only a listener with this very port passes over.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find free port: %v", err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("reserve port: %v", err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatalf("reserve port: %v", err)
	}
	_ = server.Close() // before its client: the side that closes first keeps the port
	return l.Addr().String()
}
