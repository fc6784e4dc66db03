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
	if l := world.Link; l.GetBack() != 0 {
		s.Restart = &api.Restart{Lost: time.Unix(0, l.GetLost()), Back: time.Unix(0, l.GetBack()), Filled: b.filled(world)}
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
	back := world.Link.GetBack()
	for _, renderer := range b.agent.Renderers() {
		read, found := world.Verified[renderer], world.Repairs[renderer]
		end := read.GetBegan() + read.GetTook()
		if found.GetBegan() >= back {
			end = found.GetRepaired()
		}
		if read.GetBegan() < back || end == 0 {
			return time.Time{}
		}
		if t := time.Unix(0, end); t.After(at) {
			at = t
		}
	}
	return at
}
