package connector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// backend answers the API of the connector: probes, and its actors.
type backend struct {
	server.Tree
	c *Connector
}

var _ api.Process = backend{}

func (b backend) Command(_ context.Context, path string, verb api.Verb) error {
	if verb != api.VerbRestart {
		return fmt.Errorf("%s %s: %w", verb, path, api.ErrUnsupported)
	}
	if path == rootPath {
		return fmt.Errorf("%s %s: %w: the actor is exempt", verb, path, api.ErrForbidden)
	}
	if err := b.c.system.Kill(path); err != nil {
		return server.NotFound(err)
	}
	return nil
}

func (b backend) Live() error {
	if _, ok := b.c.system.Actor(rootPath); !ok {
		return errors.New("the root actor is gone")
	}
	return nil
}

// Readiness satisfies api.Prober: a connector is ready when it knows the objects and all sources,
// whether it leads or not.
func (b backend) Readiness() api.Readiness {
	state := b.c.State()
	out := api.Readiness{Ready: true, Since: b.c.started, Parts: []api.Part{{Name: "store", OK: state.Listed && state.Trouble == "", Reason: state.Trouble}}}
	if !state.Listed && state.Trouble == "" {
		out.Parts[0].Reason = "the objects have not been listed"
	}
	writes := api.Part{Name: "writes", OK: true}
	if n := len(state.Failing); n > 0 {
		writes.Reason = fmt.Sprintf("%d services could not be written, the first: %s", n, state.Failing[0])
	}
	out.Parts = append(out.Parts, writes)
	for _, s := range state.Sources {
		part := api.Part{Name: "source " + s.Name, OK: s.Known, Reason: s.Reason}
		if len(s.Held) > 0 {
			part.Reason = fmt.Sprintf("%d services vanished and are held back", len(s.Held))
		}
		if s.Waiting > 0 {
			part.Reason = strings.TrimPrefix(fmt.Sprintf("%s; %d new services wait, because the source has as many as it may have", part.Reason, s.Waiting), "; ")
		}
		out.Parts = append(out.Parts, part)
	}
	slices.SortFunc(out.Parts, func(a, b api.Part) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range out.Parts {
		out.Ready = out.Ready && p.OK
	}
	return out
}

// State is the answer of GET /api/v1/connector.
type State struct {
	// Leading is true if this connector writes.
	Leading bool `json:"leading"`
	// Listed is true once the objects are known. Trouble is the reason why they are unknown or
	// out of date.
	Listed  bool   `json:"listed"`
	Trouble string `json:"trouble,omitempty"`
	// Services is the number of wanted services, Pending the number that differ from the
	// present objects.
	Services int `json:"services"`
	Pending  int `json:"pending"`
	// Written counts writes, Failing are the services whose last write failed.
	Written uint64   `json:"written"`
	Failing []string `json:"failing"`
	// Sources in the order of their priority.
	Sources []SourceState `json:"sources"`
	// Changes are the writes that the last comparison found. Problems are the unused parts of
	// the catalog, with reasons.
	Changes  []Change `json:"changes"`
	Problems []string `json:"problems"`

	settled bool     // the last comparison was made with the last snapshot of each source
	passes  uint64   // comparisons
	planned *planned // result of the last comparison; nil = there was none
}

// Lacks names what is unknown so far; "" = nothing.
func (s *State) Lacks() string {
	var out []string
	if !s.Listed {
		out = append(out, "the objects have not been listed")
	}
	if s.Trouble != "" {
		out = append(out, s.Trouble)
	}
	for _, source := range s.Sources {
		if source.Reason != "" {
			out = append(out, "source "+source.Name+": "+source.Reason)
		}
	}
	return strings.Join(out, "; ")
}

// SourceState is one source.
type SourceState struct {
	Name string `json:"name"`
	// Published is the time of the last snapshot, Services the number of services in it.
	Published time.Time `json:"published,omitzero"`
	Services  int       `json:"services"`
	// Known is true if a complete snapshot has come and the source works. Complete is true if
	// the last snapshot is complete. Reason is the reason if it is not.
	Known    bool   `json:"known"`
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"`
	// Held are the services whose deletion is held back, until Missing further complete
	// snapshots say the same or an operator confirms.
	Held    []string `json:"held"`
	Missing int      `json:"missing,omitempty"`
	// Waiting is how many new services are left out, because the source has as many as it may
	// have, services held back included.
	Waiting int `json:"waiting,omitempty"`
}

// Change is one write.
type Change struct {
	Verb string `json:"verb"`
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// State returns the state of the connector, at most a second old.
func (c *Connector) State() *State {
	out := &State{}
	if s := c.board.aggregator.Load(); s != nil {
		out = new(*s)
	}
	if s := c.board.sink.Load(); s != nil {
		out.Leading, out.Trouble, out.Written, out.Failing = s.Leads, s.Trouble, s.Written, s.Failing
	}
	out.Failing, out.Sources, out.Changes, out.Problems = append([]string{}, out.Failing...), append([]SourceState{}, out.Sources...), []Change{}, []string{}
	if out.planned == nil {
		return out
	}
	for _, work := range out.planned.changes.Work {
		for _, w := range work.Writes {
			kind, object := w.Object()
			out.Changes = append(out.Changes, Change{string(w.Verb), kind, object.GetName()})
		}
	}
	for _, problem := range out.planned.problems {
		out.Problems = append(out.Problems, problem.String())
	}
	return out
}

// confirm deletes the services of a source that are held back, because an operator has confirmed
// it.
func (c *Connector) confirm(r *http.Request) (any, error) {
	answer, err := c.system.Ask(r.Context(), aggregatorPath, &confirm{r.PathValue("source")})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	out := answer.(*confirmed)
	if !out.known {
		return nil, fmt.Errorf("source %s: %w", r.PathValue("source"), api.ErrNotFound)
	}
	c.log.Info("deletion confirmed", "source", r.PathValue("source"), "services", len(out.released), "who", server.PeerOf(r.Context()))
	return map[string]any{"released": append([]string{}, out.released...)}, nil
}

// metrics reads the board for each scrape. Labels are sources and reasons, never services.
type metrics struct{ *board }

var (
	leading  = describe("leading", "1 if this connector writes.")
	wanted   = describe("services", "Services that the sources want together.")
	pending  = describe("services_pending", "Services that wait for a write.")
	failing  = describe("services_failing", "Services whose last write failed.")
	written  = describe("writes_total", "Writes that were made.")
	refused  = describe("writes_failed_total", "Writes that failed, by reason.", "reason")
	offered  = describe("source_services", "Services in the last answer of a source.", "source")
	complete = describe("source_complete", "1 if the last answer of a source was complete.", "source")
	answered = describe("source_last_answer_timestamp_seconds", "Time at which a source last answered.", "source")
	held     = describe("source_held", "Services that vanished from a source and whose deletion is held back.", "source")
	waiting  = describe("source_waiting", "New services of a source that wait, because it has as many as it may have.", "source")
	problems = describe("problems", "Unused parts of the catalogs, by reason.", "reason")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("troupe_connector_"+name, help, labels, nil)
}

// Describe satisfies prometheus.Collector. It sends nothing, because which metrics there are
// depends on the sources.
func (metrics) Describe(chan<- *prometheus.Desc) {}

func (m metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if s := m.sink.Load(); s != nil {
		gauge(leading, number(s.Leads))
		gauge(pending, float64(s.Pending))
		gauge(failing, float64(len(s.Failing)))
		ch <- prometheus.MustNewConstMetric(written, prometheus.CounterValue, float64(s.Written))
		for reason, n := range s.Refused {
			ch <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(n), string(reason))
		}
	}
	s := m.aggregator.Load()
	if s == nil {
		return
	}
	for _, source := range s.Sources {
		gauge(offered, float64(source.Services), source.Name)
		gauge(complete, number(source.Complete), source.Name)
		gauge(held, float64(len(source.Held)), source.Name)
		gauge(waiting, float64(source.Waiting), source.Name)
		if !source.Published.IsZero() {
			gauge(answered, float64(source.Published.Unix()), source.Name)
		}
	}
	if s.planned != nil {
		gauge(wanted, float64(s.Services))
		for reason, n := range catalog.Count(s.planned.problems) {
			gauge(problems, float64(n), string(reason))
		}
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
