package agent

import (
	"context"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// overheard is a source somebody listens to: what it says of the nodes and pods is told to listen first. A pod's simulated interface is
// therefore there before its service, as on a real node.
type overheard struct {
	kube.Source
	listen func(*messages.NodeInput)
}

// Run satisfies kube.Source.
func (o *overheard) Run(ctx context.Context, sink kube.Sink) error {
	return o.Source.Run(ctx, overheardSink{sink, o.listen})
}

type overheardSink struct {
	kube.Sink
	listen func(*messages.NodeInput)
}

// NodeChanged satisfies kube.Sink.
func (o overheardSink) NodeChanged(in *messages.NodeInput) {
	o.listen(in)
	o.Sink.NodeChanged(in)
}

// Snapshot satisfies kube.Sink.
func (o overheardSink) Snapshot(snapshot *messages.Snapshot) {
	if snapshot.GetNode() != nil {
		o.listen(snapshot.GetNode())
	}
	o.Sink.Snapshot(snapshot)
}
