// Package interfaces is the actor that knows the interfaces of VPP and their purpose: which ones
// lead to pods of this node, where clients enter, where local endpoints are. Package vpp/interfaces
// derives the set, as a pure function of the state of VPP, Kubernetes and commands.
//
// The actor owns the set and the attachments of pods (commands). Discoveries run in a goroutine of
// the actor, one at a time. The set goes to Config.Receivers when it has changed, when one of them
// asks (Resync); its generation grows over restarts. Stop answers the commands under way and
// removes nothing from VPP.
package interfaces
