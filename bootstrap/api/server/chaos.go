package server

import (
	"fmt"
	"net/http"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// inject answers 202 with the record of the fault or the status of the drill, because the outcome
// is open; GET returns it later.
func (s *Server) inject(w http.ResponseWriter, r *http.Request) {
	var request api.ChaosRequest
	var value any
	err := decodeBody(r, &request)
	switch {
	case err != nil:
	case request.Plan == nil:
		value, err = s.backend.Inject(r.Context(), PeerOf(r.Context()), request.Fault)
	case request.Fault != live.Fault{}:
		err = fmt.Errorf("%w: body: expected a fault or a plan, not both", errQuery)
	default:
		value, err = s.backend.StartDrill(r.Context(), PeerOf(r.Context()), *request.Plan)
	}
	accepted(w, value, err)
}

// stopChaos ends all faults and the drill.
func (s *Server) stopChaos(w http.ResponseWriter, r *http.Request) {
	stopped, err := s.backend.StopChaos(r.Context(), PeerOf(r.Context()))
	respond(w, api.ChaosStopped{Stopped: stopped}, err)
}
