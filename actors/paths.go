package actors

import "github.com/troupe-vpp/troupe/actors/runtime"

// Tree paths of the fixed actors. Peers address each other by path, so nobody has to hand over PIDs after a restart.
const (
	RootName       = "agent"
	PathJournal    = "agent/journal"
	PathIntrospect = "agent/introspect"
	PathHealer     = "agent/healer"
	PathLink       = "agent/dataplane/link"
	PathInterfaces = "agent/dataplane/interfaces"
	PathDataplane  = "agent/dataplane"
	PathAudit      = "agent/dataplane/audit"
	PathExternal   = "agent/world/external"
	PathSessions   = "agent/dataplane/upkeep/sessions"
	PathRegistry   = "agent/world/registry"
	PathNodes      = "agent/world/nodes"
	PathServices   = "agent/world/services"
	PathWatch      = "agent/world/watch"
)

// PathRenderer is the path of the renderer of that name, for example "nat44".
func PathRenderer(name string) string { return PathDataplane + "/" + name }

// PathService is the path of the actor of the service "namespace/name".
func PathService(key string) string { return PathServices + "/" + runtime.EscapeName(key) }
