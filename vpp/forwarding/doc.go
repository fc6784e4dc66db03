// Package forwarding asks VPP about its forwarding table: which sources there are, and whose entry counts for a prefix. It is for the rooms of vpp that share
// addresses with others. It owns nothing and changes nothing; what an answer means is for the caller to say. Functions may be called from any goroutine,
// and end with their context.
package forwarding
