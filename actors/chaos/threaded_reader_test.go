package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
)

// readAll sends all queries of the HTTP server until ctx ends, and reads every answer completely.
// It returns the number of answers.
func (w *threaded) readAll(ctx context.Context) (answered int) {
	for ctx.Err() == nil {
		sys := w.asked.Load()
		states := sys.Snapshot()
		if len(states) == 0 { // the system ends
			pause(ctx, time.Millisecond)
			continue
		}
		target := states[rand.IntN(len(states))].Path
		if box, found := sys.Mailbox(target); found {
			w.read(box.Pending())
			w.read(box.Failures())
		}
		_, _ = sys.Inspect(ctx, target) // the actor may be gone or busy
		for _, question := range []struct {
			path string
			text any
		}{
			{address.Introspect, &status.ServicesQuery{}},
			{address.Introspect, &status.WorldQuery{}},
			{address.Journal, &status.EventsQuery{Limit: 100}},
			{address.Renderer("nat44"), &render.DiffQuery{}},
			{address.Renderer("nat44"), &render.RowsQuery{Service: serviceKey(rand.IntN(serviceNames))}},
		} {
			answer, err := sys.Ask(ctx, question.path, question.text)
			switch {
			case err == nil:
				w.read(answer)
				answered++
			case !errors.Is(err, runtime.ErrBusy) && !errors.Is(err, runtime.ErrNoActor):
				w.Errorf("ask %s: %v", question.path, err)
			}
		}
		pause(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
	}
	return answered
}

// read reads an answer completely, for the race detector.
func (w *threaded) read(answer any) {
	if _, err := json.Marshal(answer); err != nil {
		w.Errorf("%T: %v", answer, err)
	}
}
