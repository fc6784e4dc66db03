package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// mirror holds the metrics of the local mirror.
type mirror struct {
	serving  prometheus.Gauge
	saved    prometheus.Gauge
	saves    prometheus.Counter
	notSaved *prometheus.CounterVec
}

func newMirror() *mirror {
	return &mirror{
		serving: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "troupe_mirror_serving",
			Help: "1 while the agent uses the local mirror instead of the Kubernetes source.",
		}),
		saved: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "troupe_mirror_saved_timestamp_seconds",
			Help: "Time at which this process last saved the local mirror; 0 = it has not.",
		}),
		saves: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "troupe_mirror_saves_total",
			Help: "States saved in the local mirror.",
		}),
		notSaved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "troupe_mirror_refused_total",
			Help: "States that did not replace the local mirror: failed = the write failed; empty = the state has no service; foreign = the state belongs to another cluster, and the agent kept the old mirror under another name.",
		}, []string{"why"}),
	}
}

// register creates the series of all reasons with 0, so that alerts on increases work from the
// first one.
func (m *mirror) register(r *prometheus.Registry) {
	for _, why := range []string{"failed", "empty", "foreign"} {
		m.notSaved.WithLabelValues(why)
	}
	r.MustRegister(m.serving, m.saved, m.saves, m.notSaved)
}

// MirrorServing reports whether the agent uses the local mirror instead of the Kubernetes source.
func (m *Metrics) MirrorServing(on bool) {
	m.mirror.serving.Set(one(on))
}

// MirrorSaved counts a state saved in the local mirror.
func (m *Metrics) MirrorSaved(at time.Time) {
	m.mirror.saves.Inc()
	m.mirror.saved.Set(seconds(at))
}

// MirrorNotSaved counts a state that did not replace the local mirror, by the reason.
func (m *Metrics) MirrorNotSaved(why string) { m.mirror.notSaved.WithLabelValues(why).Inc() }
