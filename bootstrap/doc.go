// Package bootstrap turns a command line into a running program: the commands, their configuration, the wiring of the rooms and the order
// in which they start and stop. It holds no domain logic; what a command shows or does is decided in kube, vpp, cluster and actors.
//
//	bootstrap/agent     one running agent: wiring, start, stop, answers
//	bootstrap/demo      an agent with everything inside that proves that it works
//	bootstrap/config    the configuration file and its flags
//	bootstrap/plan      the dry run: objects -> what this node would serve
//	bootstrap/api       the HTTP server of the agent, over an interface
//	bootstrap/client    its client, used by the commands that look into an agent
//	bootstrap/metrics   the Prometheus metrics
//	bootstrap/show      the JSON of what a node serves, for plan and API
//	bootstrap/outside   where external configuration is read and kept
//	bootstrap/drill     the file of a live drill
//	bootstrap/page      the web page, over the HTTP server's own JSON
//	bootstrap/sigkill   tests only: the agent as a process, killed at any moment
//
// One file per command. A command is made by a function of its streams and added in root.go; it writes its result to standard output in
// the format of -o and returns an error, which Main prints on standard error. Exit codes: 0 ok, 1 failed, 2 usage.
//
// The scripts below testdata/script run the program as users do; every command of the README stands in one of them.
//
// A command ends when its context does: on SIGINT, SIGTERM, or by itself. A second signal kills the process.
package bootstrap
