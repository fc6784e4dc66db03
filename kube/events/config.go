package events

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Config of a Writer. The zero value of a field means its default, except for NodeName.
type Config struct {
	// NodeName is the name of this node: "troupe-<name>" is the reporting instance. Required.
	NodeName string
	// Interval and Burst bound the requests to the API server: one per Interval, and up to Burst at
	// once after a quiet time. Default 1 s and 25.
	Interval time.Duration
	Burst    int
	// ObjectInterval and ObjectBurst bound the different events about one object. ObjectInterval is
	// also the least time between two writes of the same event. Default 5 min and 10.
	ObjectInterval time.Duration
	ObjectBurst    int
	// Window is the time for which an event is remembered after its last observation, and the
	// largest age at which it is written. It should equal the time to live of events in the API
	// server (--event-ttl). Default 1 h.
	Window time.Duration
	// MostEvents bounds the number of remembered events, those that wait to be written included.
	// Default 1000.
	MostEvents int
	// Timeout bounds one request. Default 10 s.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the delay while the API server accepts no events; it doubles.
	// Default 1 s and 1 min.
	BackoffMin, BackoffMax time.Duration
}

// withDefaults returns the configuration with every zero field replaced.
func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.Burst = cmp.Or(c.Burst, 25)
	c.ObjectInterval = cmp.Or(c.ObjectInterval, 5*time.Minute)
	c.ObjectBurst = cmp.Or(c.ObjectBurst, 10)
	c.Window = cmp.Or(c.Window, time.Hour)
	c.MostEvents = cmp.Or(c.MostEvents, 1000)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.BackoffMin = cmp.Or(c.BackoffMin, time.Second)
	c.BackoffMax = cmp.Or(c.BackoffMax, time.Minute)
	return c
}

// backoff returns the delays of a new outage.
func (c *Config) backoff() wait.Backoff {
	return wait.Backoff{Duration: c.BackoffMin, Factor: 2, Jitter: 0.5, Steps: 32, Cap: c.BackoffMax}
}
