package runtime

import "strings"

// Census counts what a System holds. Before the first actor, and after Shutdown, it is the same.
type Census struct {
	// Actors are the mailboxes that are known, Spawning the actors that are being made.
	Actors, Spawning int
	// Goroutines are those of Context.Go that have not ended.
	Goroutines int
	// Processes are the entries in the registry of protoactor: actors, questions from outside that wait for an answer, and a fixed number that
	// protoactor makes for itself. Its guardian, made with the first root actor and kept, is not among them.
	Processes int
}

// Census counts. It never enters an actor.
func (s *System) Census() Census {
	s.mu.Lock()
	c := Census{Actors: len(s.boxes), Spawning: len(s.orders), Goroutines: len(s.routines)}
	s.mu.Unlock()
	for _, shard := range s.proto.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, id := range shard.Keys() {
			if !strings.HasPrefix(id, "guardian") {
				c.Processes++
			}
		}
	}
	return c
}
