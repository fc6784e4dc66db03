package chaos

import "time"

// soon is how long it may take after most faults until all is well.
const soon = 4 * tick

// bound is how long it may take after a fault of a kind, if that is longer than soon, and why.
type bound struct {
	most time.Duration
	why  string
}

// slower are the faults after which it may take longer.
func slower() map[string]bound {
	const second = time.Second
	stolen := bound{46 * second, "VPP does not report it; the drift check finds it, every 45 s"}
	refused := bound{1100 * time.Millisecond, "a half-open probe of each refusal class every second"}
	badly := bound{2200 * time.Millisecond, "settings that are refused hold up everything for a second, then a half-open probe takes another one"}
	crash := bound{3100 * time.Millisecond, "what a crash has cost is sent again after 0.9 s, what a second one has after 1.8 s, up to 30 % later"}
	loop := bound{32 * time.Second, "a crash loop: back-off, at worst quarantine for 30 s"}
	lost := bound{31 * second, "the roll call repeats everything every 30 s"}
	replaced := bound{noticed, "VPP's interface events are not simulated; while a pod has no interface VPP is asked every second"}
	return map[string]bound{
		"pod replaced":  replaced,
		"overlay ended": {61 * second, "VPP has no events for routes; its routes are read every minute"},
		"rows stolen":   stolen, "routes stolen": stolen, "settings stolen": stolen, "rows given back": stolen,
		"VPP refuses": refused, "VPP begins badly": badly, "table full": refused,
		"poisoned service": loop, "panics before messages": crash, "panics after messages": crash, "panics in starts": crash, "panics in stops": crash,
		"crash loop":    loop,
		"messages lost": lost, "one kind lost": lost, "messages late": lost, "messages twice": lost, "services late": lost,
	}
}

// within is how long it may take until all is well when faults of these kinds are over: as long as
// after the worst of them.
func (c Counts) within() time.Duration {
	most := soon
	for kind, b := range slower() {
		if c[kind] > 0 {
			most = max(most, b.most)
		}
	}
	return most
}
