package controlplane

import (
	"net"
	"testing"
)

// TestFreeAddress: no address comes twice, no other listener or connection gets the port of one,
// and a server can listen there.
func TestFreeAddress(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	for range 200 {
		address := FreeAddress(t)
		if taken[address] {
			t.Fatalf("%s came twice", address)
		}
		taken[address] = true
	}
	server := listen(t, "127.0.0.1:0")
	defer server.Close()
	for range 3_000 {
		other := listen(t, "127.0.0.1:0")
		if taken[other.Addr().String()] {
			t.Fatalf("another listener got %s", other.Addr())
		}
		_ = other.Close()
		connection, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if taken[connection.LocalAddr().String()] {
			t.Fatalf("a connection got %s", connection.LocalAddr())
		}
		_ = connection.Close()
		if accepted, err := server.Accept(); err == nil {
			_ = accepted.Close()
		}
	}
	for address := range taken {
		_ = listen(t, address).Close()
	}
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
