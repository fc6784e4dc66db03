package handlers

import (
	"slices"

	"go.fd.io/govpp/binapi/feature"

	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// registerFeature registers the messages of the feature API.
func registerFeature(r Registry) {
	write(r, featureEnableDisable)
	Read(r, featureIsEnabled)
}

// featureEnableDisable puts a node on an arc. It is not idempotent: enabling twice puts the node
// there twice.
func featureEnableDisable(c *Call, req *feature.FeatureEnableDisable) {
	key := vnet.FeatureKey{SwIf: uint32(req.SwIfIndex), Arc: req.ArcName, Node: req.FeatureName}
	retval := vnet.RetOK
	switch {
	case c.Interface(key.SwIf) == nil:
		retval = vnet.RetInvalidSwIfIndex
	case !knownFeature(req.ArcName, req.FeatureName):
		retval = vnet.RetInvalidValue
	default:
		c.SetFeature(key.SwIf, key.Arc, key.Node, req.Enable)
	}
	c.Reply(&feature.FeatureEnableDisableReply{Retval: retval})
}

// featureIsEnabled answers false for a node that is not on the arc, known or not.
func featureIsEnabled(c *Call, req *feature.FeatureIsEnabled) {
	key := vnet.FeatureKey{SwIf: uint32(req.SwIfIndex), Arc: req.ArcName, Node: req.FeatureName}
	// VPP takes an error for a yes: that the node does not exist, or that the arc has no room
	// for the interface yet.
	known := knownFeature(key.Arc, key.Node) || key.Node == lastNode(key.Arc)
	reply := &feature.FeatureIsEnabledReply{IsEnabled: c.Has(key.SwIf, key.Arc, key.Node) || !known || !c.Covers(key.SwIf, key.Arc)}
	if c.Interface(key.SwIf) == nil {
		reply.Retval, reply.IsEnabled = vnet.RetInvalidSwIfIndex, false
	}
	c.Reply(reply)
}

// lastNode is the node at the end of an arc.
func lastNode(arc string) string {
	switch arc {
	case nat.ArcInput:
		return "ip4-lookup"
	case "ip6-unicast":
		return "ip6-lookup"
	default:
		return "interface-output"
	}
}

// knownFeature reports whether a node may be on an arc. The model has the nodes of the plugins that
// it has.
func knownFeature(arc, node string) bool {
	switch arc {
	case nat.ArcInput:
		return slices.Contains([]string{"cnat-input-ip4", nat.NodeIn2out, nat.NodeOut2in, nat.NodeClassify}, node)
	case nat.ArcOutput:
		return slices.Contains([]string{"cnat-output-ip4", nat.NodeOutput}, node)
	case "ip6-unicast":
		return node == "cnat-input-ip6"
	case "ip6-output":
		return node == "cnat-output-ip6"
	}
	return false
}
