package events

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Config of a Writer. The zero value of a field but NodeName means its default.
type Config struct {
	// NodeName is the name of this node: "troupe-<name>" is the reporting instance. Required.
	NodeName string
	// Interval and Burst bound the requests to the API server: one per interval, and a burst after
	// quiet times. Default 1 s and 25.
	Interval time.Duration
	Burst    int
	// ObjectInterval and ObjectBurst bound the new events on one object. Default 5 min and 10.
	ObjectInterval time.Duration
	ObjectBurst    int
	// SeriesInterval is the least time between two writes of the count of one event. Default 1 min.
	SeriesInterval time.Duration
	// Window is how long an event is remembered after it was last observed, and how old it may get
	// before it is written. It should be the time to live of events in the API server
	// (--event-ttl). Default 1 h.
	Window time.Duration
	// MaxSeries bounds the events that are remembered, and with them those that wait. Default 1000.
	MaxSeries int
	// Timeout bounds one request. Default 10 s.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the delay while the API server takes nothing; it doubles.
	// Default 1 s and 1 min.
	BackoffMin, BackoffMax time.Duration
}

// withDefaults returns the configuration with every zero field replaced.
func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.Burst = cmp.Or(c.Burst, 25)
	c.ObjectInterval = cmp.Or(c.ObjectInterval, 5*time.Minute)
	c.ObjectBurst = cmp.Or(c.ObjectBurst, 10)
	c.SeriesInterval = cmp.Or(c.SeriesInterval, time.Minute)
	c.Window = cmp.Or(c.Window, time.Hour)
	c.MaxSeries = cmp.Or(c.MaxSeries, 1000)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.BackoffMin = cmp.Or(c.BackoffMin, time.Second)
	c.BackoffMax = cmp.Or(c.BackoffMax, time.Minute)
	return c
}

// backoff returns the delays of a new outage.
func (c *Config) backoff() wait.Backoff {
	return wait.Backoff{Duration: c.BackoffMin, Factor: 2, Jitter: 0.5, Steps: 32, Cap: c.BackoffMax}
}
