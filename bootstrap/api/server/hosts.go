package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Reasons to refuse requests and connections (Refusal.Why).
const (
	// RefusedHost means a request to a host name that does not belong to the agent.
	RefusedHost = "host"
	// RefusedOrigin means a request of a page of another site.
	RefusedOrigin = "origin"
	// RefusedAddress means a request for state that does not come over loopback.
	RefusedAddress = "address"
	// RefusedTraces means a trace above the limit of its listener.
	RefusedTraces = "traces"
	// RefusedConnections means a connection that was closed for a new one above the limit.
	RefusedConnections = "connections"
)

// Names of the listeners (Refusal.Listener).
const (
	// ListenerHTTP is the read-only listener.
	ListenerHTTP = "http"
	// ListenerControl is the control socket.
	ListenerControl = "control"
)

// Refusal is a request or a connection that the server has refused.
type Refusal struct {
	// Listener is the listener that it came to.
	Listener string
	// Why is the kind of the refusal.
	Why string
	// Client is the peer; "" = unknown.
	Client string
	// Text is the answer; it may quote the client.
	Text string
}

// refuse answers a request with a refusal and passes it on.
func (s *Server) refuse(w http.ResponseWriter, code int, refusal Refusal) {
	s.cfg.refused(refusal)
	fail(w, code, refusal.Text)
}

// listenerName is the name of a listener in a Refusal.
func listenerName(control bool) string {
	if control {
		return ListenerControl
	}
	return ListenerHTTP
}

// ownHosts are the names under which the agent may be asked over TCP, besides its addresses. The
// listener has no authentication. A page in a browser could read everything by DNS rebinding, where
// a name of another site has the address of the agent. A browser sends the name in Host, and a page
// cannot change it. Any IP address is accepted, because rebinding needs a name. The agent does not
// know all addresses under which it is reached (port forwarding, NAT in front of the node).
type ownHosts map[string]bool

func newOwnHosts(names []string) ownHosts {
	own := ownHosts{"localhost": true}
	for _, name := range names {
		own[hostOf(name)] = true
	}
	return own
}

// public reports whether the agent answers a path at any address: health and metrics.
func public(path string) bool {
	return path == "/livez" || path == "/readyz" || path == "/healthz" || path == "/metrics"
}

// overLoopback reports whether both ends of a connection are on loopback, as with a process of the
// node or the port forwarding of the kubelet. A neighbour may reach loopback where the kernel
// routes it (route_localnet), but not from there.
func overLoopback(r *http.Request) bool {
	ends := []string{r.RemoteAddr, ""}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		ends[1] = local.String()
	}
	return !slices.ContainsFunc(ends, func(end string) bool {
		at, err := netip.ParseAddrPort(end)
		return err != nil || !at.Addr().Unmap().IsLoopback()
	})
}

// only passes requests to own hosts on to next, except requests made by a page of another site, and
// requests for state that do not come over loopback.
func (o ownHosts) only(s *Server, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why, text := o.objection(r)
		if why == "" && !public(r.URL.Path) && !overLoopback(r) {
			why, text = RefusedAddress, "state is served over loopback and the control socket only: use troupe --node NODE, which needs the right "+
				"to create pods/portforward, or troupe on the node"
		}
		if why != "" {
			s.refuse(w, http.StatusForbidden, Refusal{Listener: ListenerHTTP, Why: why, Client: PeerOf(r.Context()), Text: text})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// objection returns the reason to refuse a request; "" = the request is allowed. A request without
// a host comes from a client of HTTP/1.0, which is no browser.
func (o ownHosts) objection(r *http.Request) (why, text string) {
	host := hostOf(r.Host)
	if _, err := netip.ParseAddr(host); host != "" && err != nil && !o[host] {
		return RefusedHost, fmt.Sprintf("host %q is not allowed: use an address, localhost or the name of the node, or start the agent with "+
			"--http-allowed-hosts", short(host))
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		// the origin localhost may be any program of the machine that serves pages
		if err != nil || u.Host == "" || hostOf(u.Host) != host && (!o[hostOf(u.Host)] || hostOf(u.Host) == "localhost") {
			return RefusedOrigin, fmt.Sprintf("origin %q is not allowed: a page of another site asks; --http-allowed-hosts allows its host", short(origin))
		}
	}
	return "", ""
}

// hostOf is the host of "host:port" or "host" in the form used for comparison. A name is in lower
// case without the final dot; an address is as netip writes it.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// short cuts a text of a client for an answer and a log line.
func short(text string) string {
	const most = 100
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
