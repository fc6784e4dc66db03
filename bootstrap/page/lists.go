package page

import (
	"context"
	"net/http"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// listed is the view of a list with further fields.
func listed[T, I any, P api.Paged[T, I]](ask func(context.Context) (P, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		all, err := ask(r.Context())
		if err != nil {
			return nil, err
		}
		part, err := paged(r, all.List().Items)
		return struct {
			All  P
			Page *list[I]
		}{all, part}, err
	}
}

// asked is a packet and its explanation.
type asked struct {
	Source, Destination string
	Answer              *api.Packet // nil = nothing was asked yet
}

// packet explains a packet.
func (h *handler) packet(r *http.Request) (any, error) {
	query, err := parameters(r, "source", "destination")
	if err != nil {
		return nil, err
	}
	data := asked{Source: query.Get("source"), Destination: query.Get("destination")}
	if data.Source != "" && data.Destination != "" {
		data.Answer, err = h.Source.Packet(r.Context(), data.Source, data.Destination)
	}
	return data, err
}
