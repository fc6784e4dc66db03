// Package rule is the part of planning that all renderers share. It names frontends (Key) and says
// which claim on a frontend wins (Rank) and which addresses no service may claim (Ground). For a
// renderer with one row for all clients of a frontend, a Planner says which of the rules of
// Kubernetes the row follows, which frontends are refused, and what has to be reported.
//
// A frontend is an address, port and protocol. Kubernetes has a rule for each class of its clients:
// a messages.Frontend. A row is the entry in a table of VPP.
//
// It takes values and returns values: no clock, no goroutine, no logger. A Planner belongs to one
// goroutine and to one plan.
package rule
