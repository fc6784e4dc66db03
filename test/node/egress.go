package node

import (
	"io"
	"net"
	"net/http"
	"testing"
)

// serveEgress is the proxy through which the API server connects to the addresses of nodes, each
// from its own network, until the test ends.
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

// connect answers a request CONNECT NODE:PORT, with the name of a node or its address.
func connect(w http.ResponseWriter, r *http.Request, nodes []*Node) {
	host, port, err := net.SplitHostPort(r.URL.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, n := range nodes {
		if host != n.Name && host != n.Address.String() {
			continue
		}
		out, err := n.dial(r.Context(), "tcp", net.JoinHostPort(n.Address.String(), port))
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
		return
	}
	http.Error(w, "there is no such node", http.StatusNotFound)
}
