// Package address names the actors of the tree. Actors address each other by path, so that no PID
// has to be handed over after a restart.
//
// The paths are public: the command line, the API, the journal and the metrics show them. The
// package is constant and has no state.
package address

import (
	"strings"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// Paths of the fixed actors.
const (
	// RootName is the name of the root actor, and so the path of the whole tree.
	RootName   = "agent"
	Journal    = "agent/journal"
	Introspect = "agent/introspect"
	Healer     = "agent/healer"
	Dataplane  = "agent/dataplane"
	Link       = "agent/dataplane/link"
	Interfaces = "agent/dataplane/interfaces"
	Sessions   = "agent/dataplane/upkeep/sessions"
	World      = "agent/world"
	Registry   = "agent/world/registry"
	Nodes      = "agent/world/nodes"
	Services   = "agent/world/services"
	External   = "agent/world/external"
)

// Renderer is the path of the renderer of that name, for example "nat44".
func Renderer(name string) string { return Dataplane + "/" + name }

// Service is the path of the actor of the service "namespace/name".
func Service(key string) string { return Services + "/" + runtime.EscapeName(key) }

// ServiceKey is the reverse of Service; false = the path does not belong to a service actor.
func ServiceKey(path string) (key string, ok bool) {
	name, ok := strings.CutPrefix(path, Services+"/")
	if !ok {
		return "", false
	}
	return runtime.UnescapeName(name), true
}

// Named returns which of all paths a name stands for: the path itself, the path of the service
// "namespace/name", or else every path with this last part, except those of services.
func Named[T any](name string, all []T, pathOf func(T) string) (found []string) {
	service := Service(name)
	for _, one := range all {
		path := pathOf(one)
		if path == name || path == service {
			return []string{path}
		}
		if !strings.HasPrefix(path, Services+"/") && strings.HasSuffix(path, "/"+name) {
			found = append(found, path)
		}
	}
	return found
}

// Part is the path of the actor that reports health under the name of a part.
func Part(name string) string {
	switch name {
	case "watch":
		return Registry
	case "registry", "nodes", "external":
		return World + "/" + name
	case "sessions":
		return Sessions
	default:
		return Dataplane + "/" + name
	}
}

// Supervisor is the path of the supervisor of an actor; "" for the root.
func Supervisor(path string) string {
	at := strings.LastIndexByte(path, '/')
	if at < 0 {
		return ""
	}
	return path[:at]
}
