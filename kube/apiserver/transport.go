package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// transport sends requests to one of several addresses of the API server, and to the next address
// when that one fails. It tells, for every request, whether the API server answered or the request
// failed on its way.
type transport struct {
	next    http.RoundTripper
	servers []*url.URL // at least one; requests are made for the first
	current atomic.Int64
}

// through puts a transport into the client configuration, for rc.Host and the other addresses,
// which have the same form. It returns the URL of rc.Host, for which requests are made.
func through(rc *rest.Config, others []string) (*url.URL, error) {
	t := &transport{}
	for _, host := range append([]string{rc.Host}, others...) {
		one := rest.Config{Host: host, TLSClientConfig: rc.TLSClientConfig}
		server, _, err := rest.DefaultServerUrlFor(&one)
		if err != nil {
			return nil, fmt.Errorf("read address of the API server %s: %w", host, err)
		}
		t.servers = append(t.servers, server)
	}
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper {
		t.next = next
		return t
	})
	return t.servers[0], nil
}

// RoundTrip satisfies http.RoundTripper. A request that only reads fails when all addresses have
// failed. Any other request fails with the first address, because it may have been carried out.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	var failure error
	for range t.servers {
		at := t.current.Load()
		response, err := t.next.RoundTrip(t.to(request, at))
		if err == nil {
			if response.StatusCode >= http.StatusBadGateway && response.StatusCode <= http.StatusGatewayTimeout {
				t.leave(at)
			}
			response.Body = &answer{ReadCloser: response.Body, of: request, broke: func() { t.leave(at) }}
			return response, nil
		}
		if request.Context().Err() != nil {
			return nil, err
		}
		t.leave(at)
		failure = t.join(failure, at, err)
		if request.Method != http.MethodGet {
			break
		}
	}
	outcomeOf(request.Context()).fail(failure)
	return nil, failure
}

// WrappedRoundTripper satisfies net.RoundTripperWrapper of client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// to returns a copy of the request for one address.
func (t *transport) to(request *http.Request, at int64) *http.Request {
	if at == 0 {
		return request
	}
	first, server := t.servers[0], t.servers[at]
	out, location := *request, *request.URL
	location.Scheme, location.Host = server.Scheme, server.Host
	location.Path = strings.TrimSuffix(server.Path, "/") + "/" + strings.TrimLeft(strings.TrimPrefix(location.Path, first.Path), "/")
	out.URL, out.Host = &location, server.Host
	return &out
}

// leave makes the next address the current one, unless another request has already left this one.
func (t *transport) leave(at int64) {
	t.current.CompareAndSwap(at, (at+1)%int64(len(t.servers)))
}

// join adds the failure of an address. It names the address if there are several.
func (t *transport) join(before error, at int64, err error) error {
	if len(t.servers) > 1 {
		err = fmt.Errorf("%s: %w", t.servers[at].Host, err)
	}
	if before != nil {
		err = fmt.Errorf("%w; %w", before, err)
	}
	return err
}

// answer is the body of an answer, which may break off.
type answer struct {
	io.ReadCloser
	of     *http.Request
	broke  func()
	closed atomic.Bool
}

// Close satisfies io.Closer. It ends a Read that waits.
func (a *answer) Close() error {
	a.closed.Store(true)
	return a.ReadCloser.Close()
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	ended := a.closed.Load() || a.of.Context().Err() != nil // by the reader
	if err != nil && !errors.Is(err, io.EOF) && !ended {
		a.broke()
		outcomeOf(a.of.Context()).fail(err)
	}
	return n, err
}

// outcome holds the error with which a request failed on its way. Its methods accept nil, for a
// request without an outcome.
type outcome struct {
	mu  sync.Mutex
	err error
}

type outcomeKey struct{}

func outcomeOf(ctx context.Context) *outcome {
	o, _ := ctx.Value(outcomeKey{}).(*outcome)
	return o
}

func (o *outcome) fail(err error) {
	if o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.err = err
	}
}

func (o *outcome) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
