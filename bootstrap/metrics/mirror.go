package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// mirror are the metrics of the local mirror.
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
			Help: "1 while the local mirror stands in for the Kubernetes source.",
		}),
		saved: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "troupe_mirror_saved_timestamp_seconds",
			Help: "When the local mirror was saved last by this process; 0 = it was not.",
		}),
		saves: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "troupe_mirror_saves_total",
			Help: "States that were saved in the local mirror.",
		}),
		notSaved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "troupe_mirror_refused_total",
			Help: "States that did not replace the local mirror: failed = the disk; empty = no service at all; foreign = another cluster, the old one was put aside first.",
		}, []string{"why"}),
	}
}

func (m *mirror) register(r *prometheus.Registry) {
	for _, why := range []string{"failed", "empty", "foreign"} {
		m.notSaved.WithLabelValues(why)
	}
	r.MustRegister(m.serving, m.saved, m.saves, m.notSaved)
}

// MirrorServing tells whether the local mirror stands in for the Kubernetes source.
func (m *Metrics) MirrorServing(on bool) {
	value := 0.0
	if on {
		value = 1
	}
	m.mirror.serving.Set(value)
}

// MirrorSaved counts a state that was saved in the local mirror.
func (m *Metrics) MirrorSaved(at time.Time) {
	m.mirror.saves.Inc()
	m.mirror.saved.Set(seconds(at))
}

// MirrorNotSaved counts a state that did not replace the local mirror, by the reason.
func (m *Metrics) MirrorNotSaved(why string) { m.mirror.notSaved.WithLabelValues(why).Inc() }
