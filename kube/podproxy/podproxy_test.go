package podproxy

import (
	"net/http"
	"net/url"
	"testing"
)

// taker is a transport that returns no answer and remembers the host of the request.
type taker struct{ host string }

func (t *taker) RoundTrip(r *http.Request) (*http.Response, error) {
	t.host = r.Host
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// TestHostThatTheAgentAccepts: a host name of the API server becomes localhost, which the agent
// accepts; an address stays.
func TestHostThatTheAgentAccepts(t *testing.T) {
	for server, want := range map[string]string{
		"https://api.example.com:6443": "localhost", "https://192.0.2.1:6443": "192.0.2.1:6443", "https://[2001:db8::1]:6443": "[2001:db8::1]:6443",
	} {
		base, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequest(http.MethodGet, server+"/api", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		next := &taker{}
		if _, err := (&toLocalhost{next, base}).RoundTrip(request); err != nil || next.host != want || request.Host == "localhost" {
			t.Errorf("%s: %s, %v", server, next.host, err)
		}
	}
}
