//go:build agent

package agent

import (
	"errors"

	"github.com/troupe-vpp/troupe/messages"
)

// Errors of settings for parts that the build tag agent leaves out.
var (
	errNoEmbedded  = errors.New("--etcd embedded: this program is built for the image of the agent, without an etcd server; name one with --etcd-endpoints")
	errNoSimulator = errors.New("--vpp simulated: this program is built for the image of the agent, without a simulated VPP")
)

// simulatedCNI is the CNI of the simulated VPP, which the build tag agent leaves out: an Agent has
// none.
type simulatedCNI struct{}

// changed is not called.
func (*simulatedCNI) changed(*messages.NodeInput) {}

// simulateVPP refuses to start a simulated VPP.
func (*Agent) simulateVPP() (apiSocket, statsSocket string, err error) {
	return "", "", errNoSimulator
}

// embeddedEtcd refuses to start an etcd.
func (*Agent) embeddedEtcd() (connect, error) { return nil, errNoEmbedded }
