package runtime

import "time"

// Clock is the time of the runtime and the actors. RealClock is for production and for
// testing/synctest bubbles, Sim for simulations.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc calls f once, d from now, on any goroutine. f must only send messages.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of Clock.AfterFunc.
type Timer interface {
	// Stop prevents the call. It reports false when the call has begun, has been made or was
	// stopped before.
	Stop() bool
}

// RealClock is the clock of package time.
func RealClock() Clock { return realClock{} }

type realClock struct{}

// Now satisfies Clock.
func (realClock) Now() time.Time { return time.Now() }

// AfterFunc satisfies Clock.
func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
