// Package report has the reports of actors: events for the journal, health for the healer, numbers
// for metrics.
//
// Every function sends messages or calls an Observer and never blocks. A Health value belongs to
// the actor that embeds it.
package report
