// Package fleet has the commands about all nodes, which it asks at the same time through the proxy
// of the API server: status, check and sysdump, with `troupe look` for the archive of a sysdump. A
// node that has not answered in time is listed as such, and does not delay the others.
package fleet
