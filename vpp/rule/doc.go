// Package rule says what a renderer with one row for all clients of a frontend makes of the rules
// that Kubernetes has for them: which rule the row follows, which frontends are refused, and what
// has to be reported. The planners of NAT44 and CNAT share it.
//
// It takes values and returns values: no clock, no goroutine, no logger. A Planner belongs to one
// goroutine and to one plan.
package rule
