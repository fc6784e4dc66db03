package backend

import (
	"context"
	"encoding/json"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// drainPatience limits the wait of a status for the number of draining endpoints, which only the
// renderer knows.
const drainPatience = 200 * time.Millisecond

// Status satisfies api.Reader.
func (b Backend) Status(ctx context.Context) (*api.NodeStatus, error) {
	services, err := b.Services(ctx)
	if err != nil {
		return nil, err
	}
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	s := api.StatusOf(b.agent.Config.NodeName, api.ReadBuild().String(), b.Readiness(), services)
	if world.Link.GetUp() {
		s.VPP = world.Link.GetVersion()
	}
	if sessions, err := b.Sessions(ctx); err == nil {
		s.Sessions = sessions.BusiestWorker
	}
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	var renderer struct {
		Draining int `json:"draining"`
	}
	if state, err := b.State(ctx, address.Renderer("nat44")); err == nil && json.Unmarshal(state, &renderer) == nil {
		s.Draining = renderer.Draining
	}
	return s, nil
}
