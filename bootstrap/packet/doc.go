// Package packet explains what this node does with the first packet of a connection: which frontend
// decides, what the destination becomes, and what VPP holds for it. It is pure.
package packet
