package actorstest

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/messages"
)

// Ask asks an actor. A missing answer fails the test.
func Ask[T any](w *World, path string, question any) T {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	answer, err := w.System.Ask(ctx, path, question)
	if err != nil {
		w.Fatalf("ask %s: %v", path, err)
	}
	return answer.(T)
}

// Statuses asks introspection for all services, by key; none while it does not answer.
func (w *World) Statuses() map[string]*messages.ServiceStatus {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	all := map[string]*messages.ServiceStatus{}
	if answer, err := w.System.Ask(ctx, address.Introspect, &status.ServicesQuery{}); err == nil {
		for _, s := range answer.(*status.ServicesPage).Services {
			all[s.GetKey()] = s
		}
	}
	return all
}

// Events asks the journal; the oldest comes first.
func (w *World) Events(q *status.EventsQuery) []*messages.Event {
	w.Helper()
	events := slices.Clone(Ask[*status.EventsPage](w, address.Journal, q).Events)
	slices.Reverse(events)
	return events
}

// LogJournal logs the last events, for a test that has failed.
func (w *World) LogJournal() {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	answer, err := w.System.Ask(ctx, address.Journal, &status.EventsQuery{Limit: 30})
	if err != nil {
		w.Log(err)
		return
	}
	for _, e := range answer.(*status.EventsPage).Events {
		w.Log(time.Unix(0, e.GetTime()).UTC().Format("15:04:05.000"), e.GetActor(), e.GetObject(), e.GetText(), e.GetError(), e.GetOperations())
	}
}
