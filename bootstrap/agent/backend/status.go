package backend

import (
	"context"
	"encoding/json"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/status"
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
	if !world.Back.IsZero() {
		s.Restart = &api.Restart{Lost: world.Lost, Back: world.Back, Filled: b.filled(world)}
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

// filled is when every renderer had repaired the VPP that is connected; zero = not yet.
func (b Backend) filled(world *status.WorldPage) (at time.Time) {
	for _, renderer := range b.agent.Renderers() {
		read, found := world.Verified[renderer], world.Repairs[renderer]
		if time.Unix(0, read.GetBegan()).Before(world.Back) {
			return time.Time{}
		}
		end := time.Unix(0, read.GetBegan()+read.GetTook())
		if r := repair(found); r != nil && !r.Found.Before(world.Back) {
			end = r.Repaired
		}
		if end.IsZero() {
			return time.Time{}
		}
		if end.After(at) {
			at = end
		}
	}
	return at
}
