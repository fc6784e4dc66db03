// Package cli has the common parts of the commands: streams, usage errors, the formats of -o,
// tables that fit a terminal, groups of commands, and the client of a running agent.
//
// A command is a function of the streams. It writes its result to standard output in the format of
// -o and returns an error, which bootstrap.Main prints to standard error. Errors of Usagef have
// exit code 2, other errors 1. Main does not print an error of Logged, which is in the log already.
//
// The packages below it have one file for each command:
//
//	cli/look       queries and changes of one running agent, faults in it
//	cli/fleet      all nodes: status, check, sysdump, the archive
//	cli/node       the agent, the connector and the allocator as processes, the VPP of the node
//	cli/simulated  the demo, a simulated VPP, the simulation of faults; not in the image
//
// Each value belongs to the goroutine of its command, except Streams if the command says so.
package cli
