package mirror

import "time"

// Clock tells a Source the time and calls it later. A simulation on one goroutine has a Clock of
// its own, whose AfterFunc calls f on that goroutine when the time has come.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc calls f once, after d. f blocks only on the disk.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of Clock.AfterFunc.
type Timer interface {
	// Stop prevents the call, unless it has begun.
	Stop() bool
}

// wallClock is the Clock of production; AfterFunc starts a goroutine.
type wallClock struct{}

// Now satisfies Clock.
func (wallClock) Now() time.Time { return time.Now() }

// AfterFunc satisfies Clock.
func (wallClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
