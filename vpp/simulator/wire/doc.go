// Package wire is the format of the binary API: frames, the message table with its numbering, the
// size of a message before it is decoded, and addresses. It has the messages of GoVPP's bindings,
// and no VPP.
package wire
