package informers

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/kubetest"
)

// balanced runs a test in virtual time with a source whose four informers watch an API server over
// HTTP/2 with TLS, through a load balancer.
func balanced(t *testing.T, test func(*testing.T, *link, *apiServer, *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api, lb := newAPIServer(), newLink()
		api.add(service("web", "10.96.0.1"))
		server := httptest.NewUnstartedServer(api)
		_ = server.Listener.Close()
		server.Listener, server.EnableHTTP2, server.Config.ErrorLog = lb, true, log.New(io.Discard, "", 0)
		server.StartTLS()
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		client, err := apiserver.New(&rest.Config{
			Host: "https://example.com", Dial: lb.dial, QPS: 5, Burst: 10, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		})
		if err != nil {
			t.Fatal(err)
		}
		text := &bytes.Buffer{}
		r := &running{
			t: t, mirror: kubetest.NewMirror(), log: text, done: make(chan error, 1),
			source: New(client, Config{NodeName: "n1"}, slog.New(slog.NewTextHandler(text, nil))),
		}
		var ctx context.Context
		ctx, r.stop = context.WithCancel(t.Context())
		go func() { r.done <- r.source.Run(ctx, r.mirror) }()
		time.Sleep(5 * time.Minute) // past the first back-off of the reflectors
		test(t, lb, api, r)
		r.stop()
		if err := <-r.done; err != nil {
			t.Errorf("Run: %v", err)
		}
		server.CloseClientConnections()
		server.Close()
		r.mirror.Check(t)
	})
}

// TestLoadBalancer: the load balancer in front of the API server accepts connections and passes
// nothing on. The source reports bad health within a minute and keeps it, whatever client-go does.
// It is current within 5 seconds after the load balancer works again.
func TestLoadBalancer(t *testing.T) {
	for name, mode := range map[string]mode{"closes": closes, "stopped": stopped, "silent, and refuses": refuses} {
		for _, length := range []time.Duration{time.Minute, 5 * time.Minute, 3 * time.Hour} {
			t.Run(name+", "+length.String(), func(t *testing.T) {
				balanced(t, func(t *testing.T, lb *link, api *apiServer, r *running) {
					r.want(`a/web=10.96.0.1; 0 nodes, self ""`)
					begun := len(r.mirror.View().Healths)
					lb.become(mode)
					var told time.Duration
					var well []time.Duration
					for passed := time.Second; passed <= length; passed += time.Second {
						time.Sleep(time.Second)
						synctest.Wait()
						healthy := r.mirror.View().Healthy()
						switch {
						case told == 0 && !healthy:
							told = passed
						case told != 0 && healthy:
							well = append(well, passed)
						}
					}
					switch {
					case told == 0 || told > time.Minute:
						t.Errorf("told after %s (0 = never)", told)
					case len(well) > 0:
						t.Errorf("told after %s, then well for %d of %s, first after %s", told, len(well), length, well[0])
					default:
						t.Logf("told after %s: %v", told, r.mirror.View().Healths[begun:])
					}
					lb.become(passes)
					api.add(service("new", "10.96.0.2"))
					time.Sleep(5 * time.Second)
					if view := r.settle(); !view.Healthy() {
						t.Errorf("5 s after it is back: %+v", view.Healths)
					}
					r.want(`a/new=10.96.0.2; a/web=10.96.0.1; 0 nodes, self ""`)
				})
			})
		}
	}
}

// TestQuietAPIServer: watches without changes and without bookmarks are well for hours. An API
// server sends bookmarks only of kinds that have changed since its start.
func TestQuietAPIServer(t *testing.T) {
	balanced(t, func(t *testing.T, lb *link, api *apiServer, r *running) {
		dialed := lb.connections()
		time.Sleep(5 * time.Hour)
		if view := r.want(`a/web=10.96.0.1; 0 nodes, self ""`); len(view.Healths) != 1 || !view.Healthy() || lb.connections() != dialed {
			t.Errorf("%d new connections, %+v", lb.connections()-dialed, view.Healths)
		}
		api.add(service("new", "10.96.0.2"))
		r.want(`a/new=10.96.0.2; a/web=10.96.0.1; 0 nodes, self ""`)
	})
}

// TestFlappingLoadBalancer: a load balancer fails and returns in any rhythm. No reflector backs
// off, and the source is current within 5 seconds.
func TestFlappingLoadBalancer(t *testing.T) {
	for _, rhythm := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 20 * time.Second, 100 * time.Second} {
		t.Run(rhythm.String(), func(t *testing.T) {
			balanced(t, func(t *testing.T, lb *link, api *apiServer, r *running) {
				for range 50 {
					lb.become(closes)
					time.Sleep(rhythm)
					lb.become(passes)
					time.Sleep(rhythm)
				}
				lb.become(closes)
				time.Sleep(rhythm)
				lb.become(passes)
				api.add(service("new", "10.96.0.2"))
				time.Sleep(5 * time.Second)
				if view := r.want(`a/new=10.96.0.2; a/web=10.96.0.1; 0 nodes, self ""`); !view.Healthy() {
					t.Errorf("5 s after it is back: %+v", view.Healths)
				}
				for _, asked := range api.requests()[10:] {
					if !strings.Contains(asked, "watch=") || strings.Contains(asked, "sendInitialEvents") {
						t.Errorf("listed again: %s", asked)
					}
				}
			})
		})
	}
}
