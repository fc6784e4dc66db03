package page

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// Limits of the stream of changes.
const (
	mostViewers = 64
	// look is the interval between two readings of the journal.
	look = 300 * time.Millisecond
	// slow is the time that a client has to receive an event.
	slow = 5 * time.Second
)

// live streams the number of the latest event each time that the journal has grown. The deadline of
// the request ends the stream, so that a lost client frees its place. Browsers then connect again,
// with the last number that they have.
func (h *handler) live(w http.ResponseWriter, r *http.Request) {
	select {
	case h.viewers <- struct{}{}:
		defer func() { <-h.viewers }()
	default:
		h.fail(w, r, http.StatusServiceUnavailable, fmt.Sprintf("%d documents are watched already, load this one again to see changes", mostViewers))
		return
	}
	stream := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	known := r.Header.Get("Last-Event-ID")
	if _, err := fmt.Fprint(w, "retry: 500\n\n"); err != nil || stream.Flush() != nil {
		return
	}
	for {
		page, err := h.Source.Events(r.Context(), api.EventQuery{Limit: 1})
		if err == nil && len(page.Items) > 0 {
			if seq := strconv.FormatUint(page.Items[0].Seq, 10); seq != known {
				known = seq
				_ = stream.SetWriteDeadline(time.Now().Add(slow)) // test recorders have none
				if _, err := fmt.Fprintf(w, "id: %s\ndata: %s\n\n", seq, seq); err != nil || stream.Flush() != nil {
					return
				}
			}
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

func badNumber(name, text string) error {
	return fmt.Errorf("%w: %s %q is not a number", errQuery, name, text)
}
