package mirror

import "time"

// Clock gives a Source the time and calls it later. A simulation on one goroutine brings its own;
// its AfterFunc calls f inline when the time has come.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc calls f once, d from now. f does not block, except for the disk.
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
