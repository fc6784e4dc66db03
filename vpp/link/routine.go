package link

import "context"

// routineKey is the key of the mark of Routine.
type routineKey struct{}

// Routine marks everything that is asked with ctx as asked on the off chance, by the clock and for no reason that anybody has given. A Meter
// counts it apart from what an event has cost.
func Routine(ctx context.Context) context.Context { return context.WithValue(ctx, routineKey{}, true) }

// IsRoutine reports whether ctx has the mark of Routine.
func IsRoutine(ctx context.Context) bool { return ctx.Value(routineKey{}) != nil }
