package agent

import (
	"context"
	"fmt"
	"net/http"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/bootstrap/page"
	"github.com/troupe-vpp/troupe/messages"
)

// httpServers are the two listeners. They open first, so that an address in use is found before the
// agent changes VPP, and serve once the actors can answer.
type httpServers struct {
	*server.Server
	served bool
}

// address is the address of the read-only server; "" = there is none.
func (h *httpServers) address() string {
	if h == nil || h.Addr() == nil {
		return ""
	}
	return h.Addr().String()
}

// listen opens the listeners. It runs before the actors, so that the metrics know the families
// before the first observation.
func (a *Agent) listen() error {
	a.metrics.Serves(a.rendering().Families())
	if a.cfg.API.MetricsExemplars {
		a.metrics.Exemplars()
	}
	s := server.New(a.backend, server.Config{
		HTTPAddress: a.cfg.API.HTTPAddress, ControlSocket: a.cfg.API.ControlSocket, Metrics: a.Metrics(), Probed: a.metrics.Probed,
		Health: a.keepsUp, AllowedHosts: append([]string{a.cfg.NodeName}, a.cfg.API.HTTPAllowedHosts...), Refused: a.refusals.note, Audit: a.audit,
		Redact: a.cfg.API.RedactMessages,
	}, a.log.With("part", "http"))
	pages, err := page.Handler(page.Config{Source: s.Public(), Node: a.cfg.NodeName, History: &a.history})
	if err != nil {
		return err
	}
	s.Use(pages)
	if err := s.Listen(); err != nil {
		return err
	}
	a.http = &httpServers{Server: s}
	a.onClose("HTTP listeners", func(context.Context) error {
		if a.http.served {
			return nil
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		return s.Serve(ended) // closes the listeners
	})
	return nil
}

// audit records a state-changing call in the journal.
func (a *Agent) audit(call server.Audit) {
	e := &messages.Event{Kind: "audit", Actor: address.RootName, Object: call.Path, Text: fmt.Sprintf("%s by %s: %d", call.Method, call.Who, call.Status)}
	if call.Status >= http.StatusBadRequest {
		e.Error = http.StatusText(call.Status)
	}
	a.system.Send(a.system.PID(address.Journal), e)
}

// serve starts the HTTP servers.
func (a *Agent) serve() error {
	a.metrics.Watch(metrics.Sources{
		Actors: a.system.Snapshot, Parts: a.partsOK, Stale: a.stale, Services: a.counted.states, HostRoutes: a.hostRoutes.numbers,
	})
	a.http.served = true
	a.own("HTTP servers", func(ctx context.Context) error {
		err := a.http.Serve(ctx)
		if err != nil {
			a.fail(err)
		}
		return err
	})
	a.log.Info("serving HTTP", "address", a.HTTPAddress(), "socket", a.cfg.API.ControlSocket)
	return nil
}

// serveTraces sends traces of changes to the collector, if there is one.
func (a *Agent) serveTraces() error {
	if a.cfg.API.OTLPEndpoint == "" {
		return nil
	}
	exporter := &metrics.Exporter{Endpoint: a.cfg.API.OTLPEndpoint, Node: a.cfg.NodeName, Events: a.backend.Events, Log: a.log.With("part", "traces")}
	a.own("traces", exporter.Run)
	return nil
}
