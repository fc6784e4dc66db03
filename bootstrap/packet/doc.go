// Package packet explains how this node handles the first packet of a connection: the frontend that
// decides, the new destination, and the rows in VPP for it. It is pure.
package packet
