package messages

// Coalescer is a level-triggered message: in a mailbox it supersedes a pending message of the same
// key, because only the latest value matters. It goes to the end, so it does not overtake earlier
// messages. Commands, which are carried out once each, must not implement it.
type Coalescer interface {
	// CoalesceKey names the value whose latest state the message carries. The key is unique over
	// all message types of one mailbox.
	CoalesceKey() string
}

// CoalesceKey satisfies Coalescer.
func (m *ServiceChanged) CoalesceKey() string { return "service/" + m.GetInput().GetKey() }

// CoalesceKey satisfies Coalescer.
func (*NodeChanged) CoalesceKey() string { return "node" }

// CoalesceKey satisfies Coalescer.
func (*Snapshot) CoalesceKey() string { return "snapshot" }

// CoalesceKey satisfies Coalescer.
func (*ServiceSpec) CoalesceKey() string { return "spec" }

// CoalesceKey satisfies Coalescer. One renderer gets Renders of many services, one slot for each.
func (m *Render) CoalesceKey() string { return "render/" + m.GetKey() }

// CoalesceKey satisfies Coalescer. One service gets acknowledgements of several renderers, one slot
// for each.
func (m *RenderAck) CoalesceKey() string { return "ack/" + m.GetRenderer() }

// CoalesceKey satisfies Coalescer.
func (*InterfaceSet) CoalesceKey() string { return "interfaces" }

// CoalesceKey satisfies Coalescer.
func (*LinkState) CoalesceKey() string { return "link" }

// CoalesceKey satisfies Coalescer.
func (*LocalEndpoints) CoalesceKey() string { return "local-endpoints" }

// CoalesceKey satisfies Coalescer.
func (*NodeContext) CoalesceKey() string { return "node-context" }

// CoalesceKey satisfies Coalescer.
func (*ClusterState) CoalesceKey() string { return "cluster" }

// CoalesceKey satisfies Coalescer.
func (m *Health) CoalesceKey() string { return "health/" + m.GetPart() }

// CoalesceKey satisfies Coalescer.
func (m *Replay) CoalesceKey() string { return "replay/" + m.GetRenderer() }

// CoalesceKey satisfies Coalescer.
func (m *RenderUp) CoalesceKey() string { return "up/" + m.GetRenderer() }

// CoalesceKey satisfies Coalescer.
func (*Begin) CoalesceKey() string { return "begin" }

// CoalesceKey satisfies Coalescer.
func (m *ServiceStatus) CoalesceKey() string { return "status/" + m.GetKey() }

// CoalesceKey satisfies Coalescer. Several siblings may ask the same actor, one slot for each.
func (m *Resync) CoalesceKey() string { return "resync/" + m.GetSibling() }

// CoalesceKey satisfies Coalescer.
func (*Pull) CoalesceKey() string { return "pull" }

// CoalesceKey satisfies Coalescer. Two pulls of one service are answered once.
func (m *PullSpec) CoalesceKey() string { return "pull-spec/" + m.GetKey() }

// CoalesceKey satisfies Coalescer. A Retired of a later generation includes all earlier
// generations.
func (m *Retired) CoalesceKey() string { return "retired/" + m.GetKey() }

// CoalesceKey satisfies Coalescer.
func (m *Verified) CoalesceKey() string { return "verified/" + m.GetRenderer() }
