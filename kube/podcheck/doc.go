// Package podcheck sends real packets between the pods of a cluster, for `troupe check --packets`.
//
// Run makes a namespace with a service of type NodePort and, on each node, a pod that answers TCP
// connections (Answer). A second pod of each node connects to all pods, cluster IPs and node ports
// (Ask); its log has the results. Run deletes the namespace before it returns, also when its
// context ends.
//
//	run.go       the order of the steps, against the API server
//	objects.go   the objects that Run creates
//	talk.go      the two ends of a connection, inside of the pods
//
// Package bootstrap/cli/fleet calls Run with the rights of the user; the pods run the image of the
// agent with the hidden command `troupe packets`. The package holds no state and starts no
// goroutine that outlives a call.
package podcheck
