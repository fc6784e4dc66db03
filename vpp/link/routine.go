package link

import "context"

// routineKey is the key of the mark of Routine.
type routineKey struct{}

// Routine marks the requests made with ctx as periodic: a timer caused them, and no event. A Meter
// counts them apart from what events cost.
func Routine(ctx context.Context) context.Context { return context.WithValue(ctx, routineKey{}, true) }

// IsRoutine reports whether ctx has the mark of Routine.
func IsRoutine(ctx context.Context) bool { return ctx.Value(routineKey{}) != nil }
