package simulator

import (
	"slices"

	"go.fd.io/govpp/binapi/feature"
)

// featureKey is a node on a feature arc of an interface.
type featureKey struct {
	swIf      uint32
	arc, node string
}

// registerFeature registers the messages of the feature API.
func registerFeature(r registry) {
	write(r, featureEnableDisable)
	read(r, featureIsEnabled)
}

// featureEnableDisable puts a node on an arc. It is not idempotent: enabling
// twice puts the node there twice.
func featureEnableDisable(c *call, req *feature.FeatureEnableDisable) {
	key := featureKey{swIf: uint32(req.SwIfIndex), arc: req.ArcName, node: req.FeatureName}
	retval := retOK
	switch {
	case c.iface(key.swIf) == nil:
		retval = retInvalidSwIfIndex
	case !knownFeature(req.ArcName, req.FeatureName):
		retval = retInvalidValue
	case req.Enable:
		c.features[key]++
	case c.features[key] > 1:
		c.features[key]--
	default:
		delete(c.features, key)
	}
	c.reply(&feature.FeatureEnableDisableReply{Retval: retval})
}

func featureIsEnabled(c *call, req *feature.FeatureIsEnabled) {
	key := featureKey{swIf: uint32(req.SwIfIndex), arc: req.ArcName, node: req.FeatureName}
	reply := &feature.FeatureIsEnabledReply{IsEnabled: c.features[key] > 0}
	if c.iface(key.swIf) == nil {
		reply.Retval = retInvalidSwIfIndex
	}
	c.reply(reply)
}

// knownFeature reports whether a node may be on an arc. The model knows the
// nodes of the plugins that it has.
func knownFeature(arc, node string) bool {
	switch arc {
	case arcInput:
		return slices.Contains([]string{"cnat-input-ip4", nodeIn2out, nodeOut2in, nodeClassify}, node)
	case arcOutput:
		return slices.Contains([]string{"cnat-output-ip4", nodeOutput}, node)
	case "ip6-unicast":
		return node == "cnat-input-ip6"
	case "ip6-output":
		return node == "cnat-output-ip6"
	}
	return false
}
