package runtime

import (
	"slices"
	"time"
)

// troubles returns the record of what went wrong, which idle actors do without. Lock must be held.
func (b *Mailbox) troubles() *trouble {
	if b.trouble == nil {
		b.trouble = &trouble{}
	}
	return b.trouble
}

// remember stamps a failure and keeps it among the latest. Lock must be held.
func (b *Mailbox) remember(f *Failure) {
	f.At, f.Incarnation = b.sys.clock.Now(), b.numbers.present
	t := b.troubles()
	if len(t.failures) == keptFailures {
		t.failures = slices.Delete(t.failures, 0, 1)
	}
	t.failures = append(t.failures, f)
}

// decided notes what was done about a failure.
func (b *Mailbox) decided(f *Failure, decision string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.Decision = decision
}

// contained notes a panic in Stop.
func (b *Mailbox) contained(f *Failure) {
	b.mu.Lock()
	b.stats.panics++
	b.remember(f)
	b.mu.Unlock()
	b.sys.report(b, f, decisionContained)
}

// mark notes why the supervisor leaves the actor suspended, and until when. The next incarnation resets it.
func (b *Mailbox) mark(condition State, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.troubles()
	t.condition, t.until = condition, until
}

// Failures are the latest failures of the actor, oldest first. They survive restarts, not the end of the actor.
func (b *Mailbox) Failures() []Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trouble == nil {
		return nil
	}
	out := make([]Failure, len(b.trouble.failures))
	for i, f := range b.trouble.failures {
		out[i] = *f
	}
	return out
}
