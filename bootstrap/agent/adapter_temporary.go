package agent

import (
	"context"

	"github.com/troupe-vpp/troupe/kube"
)

// feedSource makes a kube.Source of a kube.Feed while actors.Deps wants one.
type feedSource struct{ kube.Feed }

// Run satisfies kube.Source, but may be called again.
func (f feedSource) Run(ctx context.Context, sink kube.Sink) error {
	defer f.Listen(sink)()
	<-ctx.Done()
	return nil
}
