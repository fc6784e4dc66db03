package informers

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// outage makes an API server go away: watches end, and requests fail.
type outage struct {
	err      error                 // requests during the outage
	later    atomic.Pointer[error] // error of requests during the outage, if it is set
	away     atomic.Bool
	requests atomic.Int64 // while it is away
	expired  atomic.Int64 // watches that get 410 Gone when it is back
	watches  []*watch.FakeWatcher
}

// prepare gives each resource a first watch that the outage can end.
func (o *outage) prepare(r *running) {
	r.client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return o.fails(), nil, o.failure()
	})
	for range r.source.watched {
		o.watches = append(o.watches, watch.NewFakeWithOptions(watch.FakeOptions{}))
	}
	var opened atomic.Int64
	r.client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		switch i := opened.Add(1); {
		case int(i) <= len(o.watches):
			return true, o.watches[i-1], nil
		case o.fails():
			return true, nil, o.failure()
		case o.expired.Add(-1) >= 0:
			return true, nil, apierrors.NewResourceExpired("too old resource version")
		default:
			return false, nil, nil
		}
	})
}

// failure returns the error of a request while the server is away.
func (o *outage) failure() error {
	if later := o.later.Load(); later != nil {
		return *later
	}
	return o.err
}

// fails counts a request while the server is away.
func (o *outage) fails() bool {
	if o.away.Load() {
		o.requests.Add(1)
	}
	return o.away.Load()
}

// TestBackAtOnce: after an outage of any length the agent is current again within 5 seconds of
// virtual time. During the outage there is one request every 1 to 3 seconds, whatever the number of
// resources. The outage gives one verdict when it begins and one when it ends.
func TestBackAtOnce(t *testing.T) {
	request := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://10.0.0.1/api/v1/services?limit=500", Err: err}
	}
	for name, tc := range map[string]struct {
		err     error
		cause   cause
		expired int64
		within  time.Duration
	}{
		"connection refused":       {request(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}), silent, 0, 3 * time.Second},
		"EOF":                      {request(io.EOF), silent, 0, 3 * time.Second},
		"503 of a proxy":           {apierrors.NewServiceUnavailable("no backend"), silent, 0, 3 * time.Second},
		"an expired token":         {apierrors.NewUnauthorized("Unauthorized"), unauthorized, 0, 3 * time.Second},
		"an unknown CA":            {request(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), untrusted, 0, 3 * time.Second},
		"then 410 Gone everywhere": {request(io.ErrUnexpectedEOF), silent, 4, 5 * time.Second},
	} {
		for _, length := range []time.Duration{5 * time.Second, time.Minute, time.Hour} {
			t.Run(name+", "+length.String(), func(t *testing.T) {
				o := &outage{err: tc.err}
				run(t, []runtime.Object{service("web", "10.96.0.1")}, o.prepare, func(r *running) {
					r.want(`a/web=10.96.0.1; 0 nodes, self ""`)
					// an outage right after the start finds a reflector that has begun to back off
					time.Sleep(5 * time.Minute)
					o.away.Store(true)
					for _, w := range o.watches {
						w.Stop()
					}
					time.Sleep(length)
					view := r.want(`a/web=10.96.0.1; 0 nodes, self ""`)
					if n := len(view.Healths); n != 2 || !strings.HasPrefix(view.Healths[1].Reason, string(tc.cause)) || strings.Contains(view.Healths[1].Reason, "://") {
						t.Errorf("while it is away: %+v", view.Healths)
					}
					seconds := int64(length / time.Second)
					if n := o.requests.Load(); n < seconds/3 || n > seconds+4 {
						t.Errorf("%d requests in %s", n, length)
					}
					o.away.Store(false)
					o.expired.Store(tc.expired)
					time.Sleep(tc.within)
					if view := r.settle(); !view.Healthy() || tc.expired == 0 && len(view.Healths) != 3 {
						t.Errorf("%s after it is back: %+v", tc.within, view.Healths)
					}
					_, err := r.client.Services("a").Create(r.t.Context(), service("new", "10.96.0.2"), metav1.CreateOptions{})
					r.ok(err)
					r.want(`a/new=10.96.0.2; a/web=10.96.0.1; 0 nodes, self ""`)
					lines := r.log.String()
					if strings.Count(lines, "\n") != 3 || !strings.Contains(lines, "msg=\"watching the API server again\" outage=") {
						t.Errorf("the log has\n%s", lines)
					}
				})
			})
		}
	}
}

// TestReasonOfNow: an outage reports the current failure as its reason, for all kinds: a connection
// is reset, then refused, then the token is wrong.
func TestReasonOfNow(t *testing.T) {
	reset := func(port int) error {
		return &url.Error{Op: "Get", URL: "https://10.0.0.1/", Err: &net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: port}, Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443}, Err: syscall.ECONNRESET,
		}}
	}
	o := &outage{err: reset(1)}
	run(t, []runtime.Object{service("web", "10.96.0.1")}, o.prepare, func(r *running) {
		time.Sleep(5 * time.Minute)
		before := len(r.mirror.View().Healths)
		o.away.Store(true)
		for _, w := range o.watches {
			w.Stop()
		}
		for _, tt := range []struct {
			err    error
			reason string
			new    int
		}{
			{reset(1), "the API server does not answer: read tcp 10.0.0.1:6443: connection reset by peer", 1},
			{reset(2), "the API server does not answer: read tcp 10.0.0.1:6443: connection reset by peer", 0},
			{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, "the API server does not answer: dial tcp: connection refused", 1},
			{apierrors.NewUnauthorized("Unauthorized"), string(unauthorized), 1},
		} {
			o.later.Store(&tt.err)
			time.Sleep(time.Minute)
			healths := r.settle().Healths
			if last := healths[len(healths)-1]; last.Reason != tt.reason || (len(healths) > before) != (tt.new > 0) {
				t.Errorf("%v: %+v", tt.err, healths[before:])
			}
			before = len(healths)
		}
	})
}
