// Package fleet has the commands about all nodes, which it asks at the same time through the proxy
// of the API server: status, check and sysdump, with `troupe look` for the archive of a sysdump. A
// node that has not answered in time is listed as such, and does not delay the others. `status
// --serve` is a web page of all nodes. It is served on the machine of the user and not by an agent,
// because it needs the right to reach all pods of the agent.
package fleet
