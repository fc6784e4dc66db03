package agent

import (
	"context"
	"fmt"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/cluster"
	"github.com/troupe-vpp/troupe/messages"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// startServers opens the HTTP listeners and serves on them.
func (a *Agent) startServers(context.Context) error {
	a.metrics.Watch(metrics.Sources{Actors: a.actorNumbers, Parts: a.partsOK})
	server := api.New(backend{a}, api.Config{
		HTTPAddress: a.cfg.API.HTTPAddress, ControlSocket: a.cfg.API.ControlSocket, Metrics: a.metrics.Handler(), Probed: a.metrics.Probed,
	}, a.log.With("part", "http"))
	if err := server.Listen(); err != nil {
		return err
	}
	if addr := server.Addr(); addr != nil {
		a.httpAddr = addr.String()
		a.log.Info("serving HTTP", "address", a.httpAddr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	a.onClose("HTTP servers", func(deadline context.Context) error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-deadline.Done():
			return deadline.Err()
		}
	})
	return nil
}

// HTTPAddress is where the read-only server listens, "host:port"; "" = nowhere.
func (a *Agent) HTTPAddress() string { return a.httpAddr }

// Backend answers what the HTTP server answers, without HTTP.
func (a *Agent) Backend() api.Backend { return backend{a} }

// actorNumbers are the books of all mailboxes, for a scrape.
func (a *Agent) actorNumbers() []metrics.ActorNumbers {
	states := a.system.Snapshot()
	out := make([]metrics.ActorNumbers, len(states))
	for i := range states {
		s := &states[i]
		out[i] = metrics.ActorNumbers{
			Kind: s.Kind, State: string(s.State), Pending: uint64(s.User), Received: s.Posted, Coalesced: s.Coalesced, Restarts: s.Restarts,
			Failures: s.Panics, BusySeconds: s.Busy.Seconds(),
		}
	}
	return out
}

// partsOK is readiness, for a scrape.
func (a *Agent) partsOK() map[string]bool {
	parts := map[string]bool{}
	for _, p := range a.readiness.Load().Parts {
		parts[p.Name] = p.OK
	}
	return parts
}

// onFault passes a failure to the journal; metrics read the mailboxes. It is called from supervisors and does not block.
func (a *Agent) onFault(f *messages.Fault) {
	if f.GetActor() != actors.PathJournal {
		a.system.Send(a.system.PID(actors.PathJournal), f)
	}
}

// embeddedEtcd starts an etcd inside this process.
func (a *Agent) embeddedEtcd(context.Context) (*clientv3.Client, error) {
	etcd, err := cluster.StartEmbedded(cluster.EmbeddedConfig{Dir: a.cfg.Etcd.DataDir, NoSync: a.cfg.VPP.Mode == "simulated", Logger: a.log.With("part", "etcd")})
	if err != nil {
		return nil, fmt.Errorf("start embedded etcd in %s: %w", a.cfg.Etcd.DataDir, err)
	}
	a.onClose("embedded etcd", closeWith(etcd))
	return etcd.Client(), nil
}
