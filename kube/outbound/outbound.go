// Package outbound makes the HTTP clients of the project: of the API server, of agents, of Consul
// and of the collector of traces. Each client has the base URL for which the user gave credentials.
// It follows no redirect and sends nothing elsewhere, because a server that was taken over would
// choose who gets the credentials. An architecture test keeps other clients out. The package has no
// state.
package outbound

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ErrElsewhere means that a request was not sent, because its URL is not below the base.
var ErrElsewhere = errors.New("the URL is not below the address that the client is for")

// Client returns a client that sends requests to URLs below base only, through a transport. A
// redirect is an answer with its status (3xx), as any other. timeout limits a request with its
// answer; 0 = no limit.
func Client(base *url.URL, through http.RoundTripper, timeout time.Duration) *http.Client {
	return &http.Client{
		Transport: &guard{through, base}, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// guard refuses requests elsewhere. It is in front of the transport, which may add credentials.
type guard struct {
	next http.RoundTripper
	base *url.URL
}

func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if !below(g.base, r.URL) {
		if r.Body != nil {
			_ = r.Body.Close() // the interface demands it
		}
		return nil, fmt.Errorf("%w: %s", ErrElsewhere, g.base.Redacted())
	}
	return g.next.RoundTrip(r)
}

// WrappedRoundTripper satisfies net.RoundTripperWrapper of client-go.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// CloseIdleConnections makes http.Client.CloseIdleConnections reach the transport.
func (g *guard) CloseIdleConnections() {
	if idle, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

// below reports whether a URL has the server and the path of the base, or a path below it. A server
// or proxy may resolve "..", so no segment is that; a slash
// within a segment is part of a name.
func below(base, u *url.URL) bool {
	if !strings.EqualFold(u.Scheme, base.Scheme) || !strings.EqualFold(u.Host, base.Host) || u.User.String() != base.User.String() {
		return false
	}
	// JoinPath makes a path without a slash of a URL without a path
	rest, within := strings.CutPrefix("/"+strings.TrimPrefix(u.Path, "/"), strings.TrimSuffix("/"+strings.TrimPrefix(base.Path, "/"), "/"))
	up := slices.ContainsFunc(strings.Split(u.EscapedPath(), "/"), func(segment string) bool {
		segment, err := url.PathUnescape(segment)
		return err != nil || segment == ".."
	})
	return within && (rest == "" || rest[0] == '/') && !up
}
