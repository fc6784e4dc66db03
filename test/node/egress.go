package node

import (
	"io"
	"net"
	"net/http"
	"testing"
)

// serveEgress is the proxy through which the API server connects to the addresses of nodes, each
// from its own network, and to pods from that of the first node, until the test ends.
func serveEgress(t testing.TB, socket string, nodes []*Node) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatalf("listen for the API server: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { connect(w, r, nodes) })}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
}

// connect answers a request CONNECT ADDRESS:PORT, with the address of a node, or of a pod, which
// the host of each node reaches.
func connect(w http.ResponseWriter, r *http.Request, nodes []*Node) {
	host, port, err := net.SplitHostPort(r.URL.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	from := nodes[0]
	for _, n := range nodes {
		if host == n.Address.String() {
			from = n
		}
	}
	out, err := from.dial(r.Context(), "tcp", net.JoinHostPort(host, port))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = out.Close()
		return
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
	relay(in, out)
}
