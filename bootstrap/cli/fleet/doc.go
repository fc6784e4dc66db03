// Package fleet has the commands about all nodes: status, check and sysdump, with `troupe look` for
// the archive of a sysdump. They query many nodes at the same time through the API server. A node
// without an answer in time gets a line of its own and does not delay the others. `status --serve`
// serves a web page of all nodes on the machine of the user. An agent does not serve it, because
// the page needs the right to reach all pods of the agent.
//
// An archive (dump.go) is a gzipped tar: manifest.json, and a directory for each node with a JSON
// document for each resource. It has no states of actors and no contents of messages, no sessions
// with the addresses of clients, and no documents of external configuration. It has the names and
// addresses of nodes, pods and services. archived answers from it in the place of an agent.
package fleet
