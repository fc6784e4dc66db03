// Package sysdump keeps the state of many agents in one archive, and answers from the archive in
// the place of these agents.
//
//	Collect      queries one agent over its read-only API
//	Write, Read  a gzipped tar: manifest.json, and a directory for each node with a JSON document
//	             for each resource
//	Backend      answers in the place of an agent (api.Backend)
//
// An archive has no states of actors and no contents of messages, no sessions with the addresses of
// clients, and no documents of external configuration. It has the names and addresses of nodes,
// pods and services. The package has no state and starts nothing.
package sysdump
