package api

import (
	"context"
	"slices"
	"time"
)

// EventQuery selects events of the journal.
type EventQuery struct {
	// Before selects events with a smaller sequence number; 0 = from the newest. After selects
	// events with a larger one.
	Before, After uint64
	// Cause selects the effects of one change or command; 0 = all.
	Cause uint64
	// Limit is the highest number of events to return, 1 to MaxLimit.
	Limit int
	// Kind and Object select; "" = all.
	Kind, Object string
}

// News returns the events of the query after the last one that it has returned, the oldest first.
// If there are more than most, it returns the latest ones, and older is true.
func (q *EventQuery) News(ctx context.Context, ask func(context.Context, EventQuery) (*EventPage, error), most int) (events []Event, older bool, err error) {
	part := *q
	for len(events) < most {
		part.Limit = min(most-len(events), MaxLimit)
		page, err := ask(ctx, part)
		if err != nil {
			return nil, false, err
		}
		events = append(events, page.Items...)
		if older = page.Next != 0; !older {
			break
		}
		part.Before = page.Next
	}
	slices.Reverse(events)
	if len(events) > 0 {
		q.After = events[len(events)-1].Seq
	}
	return events, older, nil
}

// EventPage is a part of the journal.
type EventPage struct {
	// Items are ordered from the newest to the oldest.
	Items []Event `json:"items"`
	// Next continues the query as Before; 0 = that was all.
	Next uint64 `json:"next,omitempty"`
}

// Event is one line of the journal.
type Event struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// Kind is service, render, command, audit, resync, healing, link, interfaces, node, source,
	// readiness or fault.
	Kind  string `json:"kind"`
	Actor string `json:"actor"`
	// Object of the event: a service, an interface, a node; "" = none.
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
	// Cause is the ID of the change or command that the event is an effect of; all effects of
	// one have the same. 0 = none.
	Cause uint64 `json:"cause,omitempty"`
	// Method is update, upstream-resync, downstream-resync or full-resync; "" = the event is
	// not a transaction.
	Method string `json:"method,omitempty"`
	// Operations are the planned ones, on VPP or as steps of a command, each as one line.
	Operations []string `json:"operations,omitempty"`
	// Executed are the operations that were executed, if one has failed.
	Executed []string `json:"executed,omitempty"`
	// Error is "" after success.
	Error string `json:"error,omitempty"`
}
