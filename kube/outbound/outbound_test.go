package outbound_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/kube/outbound"
)

// authorizing is a transport that adds a token to every request, as the one of client-go does.
type authorizing struct{ urls []string }

func (a *authorizing) RoundTrip(r *http.Request) (*http.Response, error) {
	a.urls = append(a.urls, r.URL.String())
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret")
	return http.DefaultTransport.RoundTrip(r)
}

// TestRedirects: whatever status a server redirects with, the thief gets no request.
func TestRedirects(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the thief got %s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(thief.URL, status))
		base, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		client := outbound.Client(base, &authorizing{}, 0)
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			request, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/x", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(request)
			if err != nil || answer.StatusCode != status {
				t.Fatalf("%d: %v, %v", status, answer, err)
			}
			_ = answer.Body.Close()
		}
		client.CloseIdleConnections()
		server.Close()
	}
}

// TestElsewhere: base, URL => sent or not.
func TestElsewhere(t *testing.T) {
	const proxy = "https://192.0.2.1:6443/api/v1/namespaces/n/pods/p:9990/proxy"
	for _, c := range []struct {
		base, url string
		sent      bool
	}{
		{proxy, proxy + "/api/v1/status?limit=1", true},
		{proxy + "/", proxy + "/readyz", true},
		{proxy, proxy, true},
		{proxy, proxy + "2/api", false},
		{proxy, "https://192.0.2.1:6443/api/v1/secrets", false},
		{proxy, proxy + "/api/v1/services/../../../../../../secrets", false},
		{proxy, proxy + "/api/v1/services/%2e%2e/%2e%2E/secrets", false},
		{proxy, proxy + "/api/v1/services/a%2f..%2fb", true}, // a name
		{proxy, "http://192.0.2.1:6443/api/v1/namespaces/n/pods/p:9990/proxy/readyz", false},
		{proxy, "https://192.0.2.2:6443/api/v1/namespaces/n/pods/p:9990/proxy/readyz", false},
		{"http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces", true},
		{"http://127.0.0.1:4318", "http://user@127.0.0.1:4318/v1/traces", false},
	} {
		base, err := url.Parse(c.base)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequest(http.MethodGet, c.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		client := outbound.Client(base, counting(func() { sent++ }), 0)
		answer, err := client.Do(request)
		if err == nil {
			_ = answer.Body.Close()
		}
		if (sent == 1) != c.sent || errors.Is(err, outbound.ErrElsewhere) == c.sent {
			t.Errorf("%s, %s => %d requests, %v", c.base, c.url, sent, err)
		}
	}
}

// counting is a transport that sends nothing.
type counting func()

func (c counting) RoundTrip(*http.Request) (*http.Response, error) {
	c()
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}
