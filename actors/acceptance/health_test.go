package acceptance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/messages"
)

// checkups are the health-check node ports of a node. They outlive the troupe, as they do in the
// agent; its addresses are real sockets somewhere else.
type checkups struct {
	servers *healthcheck.Servers
	healthy atomic.Bool // the node keeps up

	mu sync.Mutex
	at map[string]string // real addresses, by the addresses of the node
}

// newCheckups answers until the end of the test.
func newCheckups(t *testing.T) *checkups {
	t.Helper()
	c := &checkups{at: map[string]string{}}
	c.healthy.Store(true)
	c.servers = healthcheck.New(healthcheck.Config{
		Listen: c.listen, Healthy: c.healthy.Load, Log: slog.New(slog.DiscardHandler),
		OnProblem: func(p healthcheck.Problem) { t.Errorf("health check: %+v", p) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.servers.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}

// listen stands for net.Listen, on a machine that has every address.
func (c *checkups) listen(network, address string) (net.Listener, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at[address] != "" {
		return nil, &net.OpError{Op: "listen", Net: network, Err: syscall.EADDRINUSE}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.at[address] = l.Addr().String()
	return &checkupListener{Listener: l, of: c, address: address}, nil
}

// checkupListener gives its address back.
type checkupListener struct {
	net.Listener
	of      *checkups
	address string
	once    sync.Once
}

func (l *checkupListener) Close() error {
	l.once.Do(func() {
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		delete(l.of.at, l.address)
	})
	return l.Listener.Close()
}

// listening are the addresses of a node on which a server listens, with where they really are.
func (c *checkups) listening() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.at)
}

// checkHealth asks every health-check node port of the node over HTTP. The ports in the outcome
// answer as it says, and no other port answers. The listeners follow the troupe by themselves, so
// they are waited for.
func (r *run) checkHealth(checks []kubetest.HealthCheck, statuses map[string]*messages.ServiceStatus) {
	r.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: actorstest.Patience}
	r.Until("health checks", func() string {
		open := map[string]bool{}
		for _, want := range checks {
			if reason := r.checkup(client, &want, open); reason != "" {
				return want.Service + ": " + reason
			}
		}
		// Ports without an outcome answer as their views say.
		for _, status := range statuses {
			for _, check := range status.GetView().GetHealthChecks() {
				for _, address := range check.GetListenAddresses() {
					open[address] = true
				}
			}
		}
		if got, want := slices.Sorted(maps.Keys(r.checkups.listening())), slices.Sorted(maps.Keys(open)); !slices.Equal(got, want) {
			return fmt.Sprintf("%q listen, want %q", got, want)
		}
		return ""
	})
	r.tally.count("health checks over HTTP", len(checks))
}

// checkup compares the listeners of one service; it says what is not as the file says, and notes
// the addresses.
func (r *run) checkup(client *http.Client, want *kubetest.HealthCheck, open map[string]bool) string {
	at := map[string]string{}
	listening := r.checkups.listening()
	for _, port := range r.checkups.servers.Status().Ports {
		if address := port.Address.String(); port.Service == want.Service && port.Listening {
			at[address], open[address] = listening[address], true
		}
	}
	addresses := slices.Sorted(maps.Keys(at))
	switch {
	case want.Listen != nil && !*want.Listen && len(at) > 0:
		return fmt.Sprintf("listens on %q", addresses)
	case want.Listen != nil && !*want.Listen:
		return ""
	case len(at) == 0:
		return "does not listen"
	case want.ListenAddresses != nil && !slices.Equal(slices.Sorted(slices.Values(want.ListenAddresses)), addresses):
		return fmt.Sprintf("listens on %q, want %q", addresses, want.ListenAddresses)
	}
	for _, address := range addresses {
		if got := netip.MustParseAddrPort(address).Port(); uint32(got) != want.Port {
			return fmt.Sprintf("listens on %s, want port %d", address, want.Port)
		}
		if reason := compareAnswer(client, "http://"+at[address]+"/any/path", want); reason != "" {
			return address + ": " + reason
		}
	}
	return ""
}

// compareAnswer asks once and compares status, headers and body.
func compareAnswer(client *http.Client, url string, want *kubetest.HealthCheck) string {
	response, err := client.Get(url) //nolint:noctx // a test
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	namespace, name, _ := strings.Cut(want.Service, "/")
	var body struct {
		Service             struct{ Namespace, Name string }
		LocalEndpoints      uint32
		ServiceProxyHealthy bool
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return fmt.Sprintf("body %q: %v", text, err)
	}
	if body.Service.Namespace != namespace || body.Service.Name != name || body.LocalEndpoints != want.LocalEndpoints || response.StatusCode != want.Status {
		return fmt.Sprintf("%d %s, want %d and %d endpoints", response.StatusCode, text, want.Status, want.LocalEndpoints)
	}
	for header, value := range want.Headers {
		if got := response.Header.Get(header); got != value {
			return fmt.Sprintf("header %s is %q, want %q", header, got, value)
		}
	}
	if want.Body == nil {
		return ""
	}
	var wanted, actual any
	if json.Unmarshal(want.Body, &wanted) != nil || json.Unmarshal(text, &actual) != nil {
		return fmt.Sprintf("body %s or %s is no JSON", want.Body, text)
	}
	return cmp.Diff(wanted, actual)
}

// checkMetrics adds up what the services of the running troupe say, as a scrape of the agent does.
func (r *run) checkMetrics(want *kubetest.Metrics, statuses map[string]*messages.ServiceStatus) {
	r.Helper()
	if want == nil {
		return
	}
	r.tally.count("metrics", 1)
	var got kubetest.Metrics
	for _, s := range statuses {
		for _, n := range []*messages.NoLocalEndpoints{s.GetView().GetNoLocalIpv4(), s.GetView().GetNoLocalIpv6()} {
			got.NoLocalEndpoints.Internal += n.GetInternal()
			got.NoLocalEndpoints.External += n.GetExternal()
		}
	}
	if got != *want {
		r.Errorf("%s: no_local_endpoints %+v, want %+v", r.step, got.NoLocalEndpoints, want.NoLocalEndpoints)
	}
}

// deletesSession is the message by which the agent ends one session.
const deletesSession = "nat44_del_session"

// checkCleanup compares kube-proxy's decision to look for stale flows, on the input of the troupe
// before and after the step. Without that decision the agent ends no session.
func (r *run) checkCleanup(want *bool) {
	r.Helper()
	inputs, ended := r.Source.Services(), r.VPP.Counters().Of(deletesSession)
	if want != nil {
		r.tally.count("UDP clean-up decisions", 1)
		if required := kubetest.CleanupRequired(r.inputs, inputs); required != *want {
			r.Errorf("%s: UDP flow clean-up required is %t", r.step, required)
		}
		if !*want && ended != r.ended {
			r.Errorf("%s: %d sessions were ended, want 0", r.step, ended-r.ended)
		}
	}
	r.inputs, r.ended = inputs, ended
}
