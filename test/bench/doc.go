// Command bench measures the figures that users decide by: the time until the agent is ready, its
// CPU time and memory, and their growth with the number of services. The agent of this working tree
// runs as a process beside a real VPP (`vpp` on PATH, or TROUPE_VPP_BIN and TROUPE_VPP_PLUGINS).
// Without one it runs beside a simulated VPP, and the output says so. The services, of 5 endpoints
// each, come from files or from a real API server, where single changes are measured as well.
//
//	go -C test run ./bench -sizes 1000,10000 -repeat 3
//	go -C test run ./bench -sizes 10000 -idle 5m -o json
//	go -C test run ./bench -source api -sizes 1000,5000
//
//	main.go      flags, the output as a table or as JSON
//	figure.go    values of a figure: median and spread
//	measure.go   one repetition of all figures at one size
//	change.go    single changes
//	packets.go   what packets cost in VPP
//	capture.go   the packets as a file
//	proxy.go     when VPP answers: a proxy before its API socket
//	node.go      the processes: VPP and the agent
//	objects.go   the services as files
//	cluster.go   the services in a real API server
//
// All figures of a repetition are of one agent and one VPP. Sizes alternate, so that a busy machine
// does not favour one of them.
package main
