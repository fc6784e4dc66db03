// Package sysdump keeps the state of many agents in one archive and answers from it as the agents
// would.
//
//	Collect      asks one agent over its read-only API
//	Write, Read  a gzipped tar: manifest.json, and a directory for each node with a JSON document
//	             for each resource
//	Node         answers as an agent (api.Backend) with what the archive has
//
// An archive has no states of actors and no contents of messages, no sessions with the addresses of
// clients, and no documents of external configuration. It has the names and addresses of nodes,
// pods and services.
package sysdump
