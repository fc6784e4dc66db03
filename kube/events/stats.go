package events

// Stats counts what became of the events of a Writer.
type Stats struct {
	// Recorded counts calls of Record.
	Recorded uint64
	// Repeated counts those that were an event already known.
	Repeated uint64
	// Written counts creations and updates that the API server took.
	Written uint64
	// Adopted counts events that the API server had already, from an earlier run or another node.
	Adopted uint64
	// Limited counts new events that were dropped because their object had had too many.
	Limited uint64
	// Overflowed counts new events that were dropped because MaxSeries others were waiting.
	Overflowed uint64
	// Expired counts events that were dropped because they waited for longer than Window.
	Expired uint64
	// Refused counts writes that the API server will never take.
	Refused uint64
	// Abandoned counts events that were dropped after MaxTries errors.
	Abandoned uint64
	// Waiting is how many events are to be written.
	Waiting int
	// Failing is why the API server takes nothing; "" = it does.
	Failing string
	// LastRefusal is the reason of the last of Refused; "" = there was none.
	LastRefusal string
}

// Lost is how many events were dropped, for whatever reason.
func (s Stats) Lost() uint64 { return s.Limited + s.Overflowed + s.Expired + s.Refused + s.Abandoned }
