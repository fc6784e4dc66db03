package chaos

import "time"

// soon is how long it may take after most faults until all is well.
const soon = 4 * tick

// bound is how long it may take after a fault of a kind, if that is longer than soon, and why.
type bound struct {
	most time.Duration
	why  string
}

// slower are the faults after which it may take longer. What is not in a process, messages that get lost or come late, is repaired by questions that
// are asked again after a second or more, at the latest by the audit.
func slower() map[string]bound {
	const second = time.Second + soon
	stolen := bound{second, "VPP tells nobody; the drift check finds out within a second"}
	refused := bound{second, "one of each kind is tried once a second"}
	loop := bound{32 * time.Second, "a crash loop: back-off, at worst quarantine for 30 s"}
	lost := bound{61 * time.Second, "not in a process; the audit repairs it"}
	return map[string]bound{
		"slow list":   {5 * time.Second, "the list itself takes up to 4 s"},
		"rows stolen": stolen, "routes stolen": stolen, "rows given back": stolen,
		"VPP refuses": refused, "table full": refused,
		"poisoned service": loop, "panics before messages": loop, "panics after messages": loop, "panics in starts": loop, "panics in stops": loop,
		"messages lost": lost, "messages late": lost, "messages twice": lost, "services late": lost,
	}
}

// within is how long it may take until all is well when faults of these kinds are over: as long as after the worst of them.
func (c Counts) within() time.Duration {
	most := soon
	for kind, b := range slower() {
		if c[kind] > 0 {
			most = max(most, b.most)
		}
	}
	return most
}
