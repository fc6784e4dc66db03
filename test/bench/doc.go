// Command bench measures the figures that users decide by: the time until the agent is ready, its
// CPU time and memory, and their growth with the number of services. The agent of this working tree
// runs as a process beside a real VPP (`vpp` on PATH, or TROUPE_VPP_BIN and TROUPE_VPP_PLUGINS).
// Without one it runs beside a simulated VPP, and the output says so. The services come from files,
// 5 endpoints each.
//
//	go -C test run ./bench -sizes 1000,10000 -repeat 3
//	go -C test run ./bench -sizes 10000 -idle 5m -o json
//
//	main.go      flags, the output as a table or as JSON
//	figure.go    values of a figure: median and spread
//	measure.go   one repetition of all figures at one size
//	node.go      the processes: VPP and the agent
//	objects.go   the files of the services
//
// All figures of a repetition are of one agent and one VPP. Sizes alternate, so that a busy machine
// does not favour one of them.
package main
