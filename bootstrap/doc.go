// Package bootstrap is the program: the commands, their configuration, the wiring of the packages
// and the order in which components start and stop. Domain logic is in kube, vpp, cluster and
// actors.
//
//	bootstrap/cli         the commands, their common parts, the HTTP client, the demo
//	bootstrap/agent       one running agent: wiring, start, stop, answers
//	bootstrap/connector   one running connector
//	bootstrap/addresses   one running allocator of addresses
//	bootstrap/config      the configuration file and its flags
//	bootstrap/plan        the dry run: objects -> frontends and rows of a node
//	bootstrap/api         the contract of the HTTP API: types, errors, Backend
//	bootstrap/api/server  the HTTP server of a Backend, its answers about actors
//	bootstrap/page        the web page
//	bootstrap/metrics     the Prometheus metrics, and traces for an OpenTelemetry collector
//	bootstrap/hostroute   routes of the host to VPP
//	bootstrap/process     tests only: the agent as a process, killed at random times; tenants with
//	                      very many frontends
//
// Functions of the streams make the commands, root.go collects them. A command returns an error,
// which Main prints to standard error. Exit codes: 0 ok, 1 failed, 2 usage.
//
// The scripts in testdata/script run the program as users do; they contain every command of the
// README.
//
// SIGINT and SIGTERM end the context of a command. A second signal kills the process.
package bootstrap
