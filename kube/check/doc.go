// Package check checks a cluster for `troupe check`: before an agent runs, and with real packets
// between pods (--packets).
//
// Rights, Compare, KubeProxy and TooOld find out whether the agent will get what it needs from the
// API server: a version, the rights to list, and nodes whose networks fit the configuration. They
// change nothing.
//
// Run makes a namespace with a service of type NodePort and, on each node, a pod that answers TCP
// connections (Answer). A second pod of each node connects to all pods, cluster IPs and node ports
// (Ask); its log has the results. Run deletes the namespace before it returns, also when its
// context ends.
//
//	precheck.go  what the API server lacks for an agent
//	run.go       the order of the steps, against the API server; the objects that Run creates
//	talk.go      the two ends of a connection, inside of the pods
//
// Package bootstrap/cli/fleet calls Run with the rights of the user; the pods run the image of the
// agent with the hidden command `troupe packets`. The package holds no state and starts no
// goroutine that outlives a call.
package check
