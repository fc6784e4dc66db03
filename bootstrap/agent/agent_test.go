package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestStopInEveryState ends agents in the states that are hard to stop in; TestMain finds what they
// leave running.
func TestStopInEveryState(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, cfg *config.Agent)
		reach  func(t *testing.T, a *Agent) // waits for the state
	}{
		"at once": {},
		"while etcd starts": {reach: func(t *testing.T, a *Agent) {
			eventually(t, "VPP is connected", func() bool { return partOK(a, "link") })
		}},
		"ready":        {reach: ready},
		"with no etcd": {change: func(_ *testing.T, cfg *config.Agent) { cfg.Etcd.Mode = config.EtcdNone }, reach: ready},
		"VPP is not there": {
			change: func(t *testing.T, cfg *config.Agent) {
				cfg.VPP.Mode, cfg.VPP.APISocket = config.VPPSocket, filepath.Join(t.TempDir(), "none")
			},
			reach: func(t *testing.T, a *Agent) { reason(t, a, "link", "waiting for VPP") },
		},
		"VPP does not answer": {
			change: func(t *testing.T, cfg *config.Agent) {
				socket := filepath.Join(shortDir(t), "vpp")
				l, err := net.Listen("unix", socket) // nobody accepts
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				cfg.VPP.Mode, cfg.VPP.APISocket = config.VPPSocket, socket
			},
			reach: func(t *testing.T, a *Agent) { reason(t, a, "link", "not connected yet") },
		},
		"VPP has died": {reach: func(t *testing.T, a *Agent) {
			ready(t, a)
			a.Simulator().Crash()
			eventually(t, "not ready", func() bool { return !partOK(a, "link") })
		}},
		"etcd is not there": {
			change: func(t *testing.T, cfg *config.Agent) {
				cfg.Etcd.Mode, cfg.Etcd.Endpoints = config.EtcdExternal, []string{"http://" + dead(t)}
			},
			reach: func(t *testing.T, a *Agent) { reason(t, a, "nodes", "waiting for etcd") },
		},
		"the API server is not there": {
			change: func(t *testing.T, cfg *config.Agent) {
				cfg.Kubernetes.Source, cfg.Kubernetes.Kubeconfig = config.SourceKubernetes, kubeconfig(t, dead(t))
			},
			reach: func(t *testing.T, a *Agent) {
				eventually(t, "VPP is connected", func() bool { return partOK(a, "link") })
			},
		},
		"the files are not there": {
			change: func(_ *testing.T, cfg *config.Agent) { cfg.Kubernetes.Source = "files:/nonexistent" },
			reach:  func(t *testing.T, a *Agent) { reason(t, a, "watch", "list directory") },
		},
		"an actor is suspended": {change: func(_ *testing.T, cfg *config.Agent) { cfg.API.EnableChaos = true }, reach: func(t *testing.T, a *Agent) {
			ready(t, a)
			if err := a.Backend().Command(t.Context(), address.Registry, "suspend"); err != nil {
				t.Fatal(err)
			}
		}},
		"an actor is being restarted": {reach: func(t *testing.T, a *Agent) {
			ready(t, a)
			for _, path := range []string{address.Nodes, address.Renderer("nat44"), address.Registry} {
				if err := a.Kill(path); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := everything(t)
			if tt.change != nil {
				tt.change(t, cfg)
			}
			a, err := Start(cfg, quiet())
			if err != nil {
				t.Fatal(err)
			}
			if tt.reach != nil {
				tt.reach(t, a)
			}
			began := time.Now()
			stop(t, a)
			if took := time.Since(began); took > 2*stopTimeout {
				t.Errorf("it took %s", took)
			}
			stop(t, a) // a second time does nothing
			if _, err := os.Stat(cfg.API.ControlSocket); err == nil {
				t.Error("the control socket is left behind")
			}
		})
	}
}

func partOK(a *Agent, name string) bool { return a.partsOK()[name] }

// reason waits until a part says why it is not well.
func reason(t *testing.T, a *Agent, part, text string) {
	t.Helper()
	eventually(t, part+" says "+text, func() bool {
		for _, p := range a.Backend().Readiness().Parts {
			if p.Name == part && !p.OK && strings.Contains(p.Reason, text) {
				return true
			}
		}
		return false
	})
}

func kubeconfig(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://" + address +
		"'}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStartRefuses: what can be known to fail at once is an error of Start that names it, and
// nothing is left: the same configuration, mended, starts.
func TestStartRefuses(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(cfg *config.Agent)
		is     error
		want   string
	}{
		"port in use":          {func(c *config.Agent) { c.API.HTTPAddress = busy.Addr().String() }, syscall.EADDRINUSE, "listen for HTTP: "},
		"socket is a file":     {func(c *config.Agent) { c.API.ControlSocket = file }, nil, file + " exists and is not a socket"},
		"no kubeconfig":        {func(c *config.Agent) { c.Kubernetes.Source, c.Kubernetes.Kubeconfig = "kubernetes", "/none" }, os.ErrNotExist, "connect to Kubernetes: "},
		"bad service network":  {func(c *config.Agent) { c.Services.ServiceCIDRs = []string{"x"} }, nil, "services.serviceCIDRs[0]: "},
		"bad loopback address": {func(c *config.Agent) { c.NAT44.LoopbackIP = "x" }, nil, "nat44.loopbackIP: "},
		"no CA": {func(c *config.Agent) {
			c.Etcd.Mode, c.Etcd.Endpoints, c.Etcd.CA = config.EtcdExternal, []string{"https://127.0.0.1:1"}, "/none"
		}, os.ErrNotExist, "connect to etcd: read etcd CA: "},
		"data directory is a file": {func(c *config.Agent) { c.Etcd.DataDir = file }, nil, "open embedded etcd in " + file},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := everything(t)
			wrong := *cfg
			tt.change(&wrong)
			a, err := Start(&wrong, quiet())
			if err == nil {
				stop(t, a)
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want something with %q", err, tt.want)
			}
			run(t, cfg)
		})
	}
}

// TestSecondAgentTouchesNothing: an agent that was started twice by mistake ends before it connects
// to VPP.
func TestSecondAgentTouchesNothing(t *testing.T) {
	first := run(t, everything(t))
	ready(t, first)
	before := first.Simulator().Accepted() // connections: the first agent goes on with its requests
	second := everything(t)
	second.VPP.Mode, second.VPP.APISocket = config.VPPSocket, first.Simulator().Socket()
	second.Etcd.DataDir = first.cfg.Etcd.DataDir
	if _, err := Start(second, quiet()); !errors.Is(err, etcd.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if after := first.Simulator().Accepted(); after != before {
		t.Errorf("%d connections to VPP, want %d as before", after, before)
	}
	if !first.Backend().Readiness().Ready {
		t.Error("the first agent is not ready any more")
	}
}

// TestRestartWritesNothing: an agent that finds everything as it should be changes nothing.
func TestRestartWritesNothing(t *testing.T) {
	first := run(t, everything(t))
	ready(t, first)
	vpp := first.Simulator()
	quiescent(t, first)
	// A second agent beside the first one, over the same VPP, is what a restarted one is for VPP.
	// The first one lets it in.
	letIn(t, first)
	for range 3 {
		before, rows := vpp.Counters().Mutating(), vpp.Rows()
		asked := vpp.Counters()
		cfg := everything(t)
		cfg.VPP.Mode, cfg.VPP.APISocket = config.VPPSocket, vpp.Socket()
		again, err := Start(cfg, quiet())
		if err != nil {
			t.Fatal(err)
		}
		ready(t, again)
		diff, err := again.Backend().Diff(t.Context())
		if err != nil || len(diff.Renderers[0].Operations) > 0 || diff.Renderers[0].Error != "" {
			t.Errorf("diff %+v, %v", diff, err)
		}
		if writes := vpp.Counters().Mutating() - before; writes != 0 {
			events, _ := again.Backend().Events(t.Context(), api.EventQuery{Limit: 100})
			t.Errorf("%d writes; VPP had been asked for\n%s\nand then for\n%s\nevents %+v", writes, asked, vpp.Counters(), events)
		}
		if after := vpp.Rows(); strings.Join(after, "\n") != strings.Join(rows, "\n") {
			t.Errorf("rows are now\n%s", strings.Join(after, "\n"))
		}
		stop(t, again)
	}
}

// quiescent waits until VPP holds everything that an agent wants, also of what it learned after it
// was ready, and nothing is under way: two comparisons find nothing to do, and nothing was written
// between them.
func quiescent(t *testing.T, a *Agent) {
	t.Helper()
	quiescentVPP(t, a, a.Simulator())
}

// quiescentVPP is quiescent for a VPP outside the agent.
func quiescentVPP(t *testing.T, a *Agent, vpp *simulator.VPP) {
	t.Helper()
	for last, deadline := uint64(0), time.Now().Add(patience); time.Now().Before(deadline); {
		diff, err := a.Backend().Diff(t.Context())
		writes := vpp.Counters().Mutating()
		if err == nil && len(diff.Renderers[0].Operations) == 0 && diff.Renderers[0].Error == "" && writes == last {
			return
		}
		last = writes
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the agent goes on writing")
}

// TestWait ends with the context, or with the error of what died.
func TestWait(t *testing.T) {
	a := run(t, everything(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Wait(ctx); err != nil {
		t.Errorf("a context that ended: %v", err)
	}
	ready(t, a)
	done := make(chan struct{})
	hammer := make(chan struct{})
	go func() {
		defer close(hammer)
		for { // the children of the root, whose patience is the last
			for _, path := range []string{address.Journal, address.Introspect, address.Healer} {
				_ = a.Kill(path) // it may be dead already
			}
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	err := ended(t, a)
	close(done)
	<-hammer
	if !errors.Is(err, ErrFatal) {
		t.Errorf("got %v, want ErrFatal", err)
	}
}

// TestEmbeddedEtcdFails: an etcd that cannot serve, found after the start, ends the agent with the
// reason: waiting would not help.
func TestEmbeddedEtcdFails(t *testing.T) {
	cfg := everything(t)
	// etcd cannot listen where something else than a socket is.
	if err := os.MkdirAll(filepath.Join(cfg.Etcd.DataDir, "etcd.sock", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := Start(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, a)
	if err := ended(t, a); err == nil || !strings.Contains(err.Error(), "start embedded etcd in "+cfg.Etcd.DataDir) {
		t.Errorf("got %v", err)
	}
}

// TestPage: the agent serves its web page, and answers everything that the page asks for.
func TestPage(t *testing.T) {
	cfg := everything(t)
	cfg.API.EnableChaos = true
	a := run(t, cfg)
	ready(t, a)
	fetch := func(path string) (int, string) {
		t.Helper()
		response, err := http.Get("http://" + a.HTTPAddress() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if code, body := fetch("/"); code != http.StatusOK || !strings.Contains(body, `<script src="/page.js">`) {
		t.Errorf("/: %d %s", code, body)
	}
	if code, _ := fetch("/none"); code != http.StatusNotFound {
		t.Errorf("/none: %d", code)
	}
	for _, path := range []string{"/tree", "/actors/agent/dataplane/nat44", "/services/shop/web", "/interfaces", "/nodes", "/events", "/resync", "/diff", "/chaos", "/packet?source=10.1.1.3&destination=10.96.0.1:80/TCP"} {
		if code, body := fetch(path); code != http.StatusOK || !strings.Contains(body, "<h2") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}
