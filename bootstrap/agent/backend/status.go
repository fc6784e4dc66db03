package backend

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// drainPatience is how long a status waits for the number of endpoints that drain, which only the
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
	s := api.StatusOf(b.agent.Config.NodeName, Version(), b.Readiness(), services)
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

// Version is the version of this program: a tag, a pseudo-version, or "(devel)" with the start of
// the revision where the build recorded one.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && version == "(devel)" {
			version += " " + s.Value[:min(len(s.Value), 12)]
		}
	}
	return version
}
