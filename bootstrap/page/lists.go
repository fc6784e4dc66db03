package page

import (
	"net/http"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// interfaces lists the interfaces of VPP.
func (h *handler) interfaces(r *http.Request) (any, error) {
	all, err := h.Source.Interfaces(r.Context())
	if err != nil {
		return nil, err
	}
	part, err := paged(r, all.Items)
	return struct {
		*api.Interfaces
		Page *list[api.Interface]
	}{all, part}, err
}

// nodes lists the nodes of the cluster.
func (h *handler) nodes(r *http.Request) (any, error) {
	all, err := h.Source.Nodes(r.Context())
	if err != nil {
		return nil, err
	}
	part, err := paged(r, all.Items)
	return struct {
		*api.Nodes
		Page *list[api.Node]
	}{all, part}, err
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
