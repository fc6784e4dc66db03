// Package bootstrap is the program: the commands, their configuration, the wiring of the packages
// and the order in which components start and stop. Domain logic is in kube, vpp, cluster and
// actors.
//
//	bootstrap/cli       the commands by what they need, and what they have in common
//	bootstrap/agent     one running agent: wiring, start, stop, answers
//	bootstrap/demo      an agent with a simulated VPP and an embedded etcd, which verifies itself
//	bootstrap/config    the configuration file and its flags
//	bootstrap/plan      the dry run: objects -> frontends and rows of a node
//	bootstrap/api       the HTTP server of the agent, over an interface
//	bootstrap/api/peer  who has made a request
//	bootstrap/client    its client, for the commands that query an agent
//	bootstrap/metrics   the Prometheus metrics
//	bootstrap/show      the JSON of frontends and rows, for plan and API
//	bootstrap/outside   sources and store of external configuration
//	bootstrap/drill     the file of a chaos drill
//	bootstrap/page      the web page, over the HTTP server's own JSON
//	bootstrap/sigkill   tests only: the agent as a process, killed at random times
//
// A function of the streams makes a command, root.go adds it. A command returns an error, which
// Main prints to standard error. Exit codes: 0 ok, 1 failed, 2 usage.
//
// The scripts in testdata/script run the program as users do; they contain every command of the
// README.
//
// SIGINT and SIGTERM end the context of a command. A second signal kills the process.
package bootstrap
