// Package cli is what the commands have in common: streams, usage errors, the formats of -o, tables
// and their fit to a terminal, groups of commands.
//
// A command is a function of the streams. It writes its result to standard output in the format of
// -o and returns an error, which bootstrap.Main prints to standard error. Errors of Usagef have
// exit code 2, others 1. An error in the log is marked with Logged and not printed again.
//
// The rooms below it have one file for each command:
//
//	cli/run        the agent and the connector as processes
//	cli/look       queries and changes of one running agent
//	cli/chaos      faults in a running agent
//	cli/fleet      all nodes: status, check, sysdump, the archive
//	cli/node       commands that ask VPP itself: capture, cleanup, version
//	cli/simulated  the demo, a simulated VPP, the simulation of faults; not in the image
//
// Nothing here is used at the same time by several goroutines, except Streams, as the command says.
package cli
