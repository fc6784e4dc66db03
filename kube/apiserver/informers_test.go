package apiserver

import (
	"errors"
	"net/url"
	"testing"
)

// TestTroubles: a cause appears once, without the URL of the request, and ends with the next watch.
func TestTroubles(t *testing.T) {
	var s troubles
	if got := s.String(); got != "" {
		t.Errorf("%q", got)
	}
	refused := &url.Error{Op: "Get", URL: "https://192.0.2.1/api/v1/services?resourceVersion=7", Err: errors.New("connection refused")}
	s.set("services", refused)
	s.set("nodes", refused)
	s.set("endpointslices", errors.New("forbidden"))
	if got, want := s.String(), "watch nodes, services: connection refused; watch endpointslices: forbidden"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, plural := range []string{"services", "nodes", "endpointslices"} {
		s.set(plural, nil)
	}
	if got := s.String(); got != "" {
		t.Errorf("%q", got)
	}
}
