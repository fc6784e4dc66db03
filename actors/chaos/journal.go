package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/status"
)

// journal is what the troupe itself wrote down last, newest first, to find out why.
func (w *world) journal() []string {
	const last = 15
	answer, err := w.sys.Ask(context.Background(), address.Journal, &status.EventsQuery{Limit: last})
	if err != nil {
		return []string{"journal: " + err.Error()}
	}
	var lines []string
	for _, e := range answer.(*status.EventsPage).Events {
		lines = append(lines, fmt.Sprint("journal: ", time.Unix(0, e.GetTime()).UTC().Format("15:04:05.000"), " ", e.GetActor(), " ", e.GetObject(), " ",
			e.GetText(), " ", e.GetError(), " ", e.GetOperations()))
	}
	return lines
}
