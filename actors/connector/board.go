package connector

import "sync/atomic"

// Board has the state that the actors publish every second outside of messages, so that probes have
// an answer even when actors hang. Any goroutine may read it; the values are immutable.
type Board struct {
	aggregator atomic.Pointer[Status]
	sink       atomic.Pointer[SinkStatus]
}

// Sources returns the state of the sources; nil = nothing is known yet.
func (b *Board) Sources() *Status { return b.aggregator.Load() }

// Sink returns the state of the writes; nil = nothing is known yet.
func (b *Board) Sink() *SinkStatus { return b.sink.Load() }

// publish is the timer message of the actors that publish.
type publish struct{}
