// Command bench measures the figures that users decide by: the time until the agent is ready, its
// CPU time and memory, and their growth with the number of services. The agent of this working tree
// runs as a process beside a real VPP (`vpp` on PATH, or TROUPE_VPP_BIN and TROUPE_VPP_PLUGINS).
// Without one it runs beside a simulated VPP, and the output says so. The services, of 5 endpoints
// each, come from files, from a real API server, or from a feed: the lists and watches of an API
// server, in this process. The last two also measure single changes. With a feed, the command also
// measures thousands of changes a second and services of thousands of endpoints. With an API
// server, and with a feed if it is asked to, it also measures kube-proxy in the mode nftables with
// the same objects, if this machine has the program nft and the user is root.
//
//	go -C test run ./bench -sizes 1000,10000 -repeat 3
//	go -C test run ./bench -sizes 10000 -idle 5m -o json
//	go -C test run ./bench -source api -sizes 1000,5000
//	go -C test run ./bench -source feed -sizes 10000,50000
//	go -C test run ./bench -source feed -sizes 20000 -only kube-proxy -changes 3
//
//	main.go      flags, the output as a table or as JSON
//	figure.go    values of a figure: median and spread
//	measure.go   one repetition of all figures at one size
//	bare.go      what the agent sends, without the agent
//	change.go    single changes
//	churn.go     many changes a second
//	big.go       services of many endpoints
//	packets.go   what packets cost in VPP
//	capture.go   the packets as a file
//	proxy.go     when VPP answers: a proxy before its API socket
//	node.go      the processes: VPP and the agent
//	kubeproxy.go kube-proxy in place of the agent and VPP
//	isolation.go a network namespace for the rules of kube-proxy, and the kernel's notifications
//	objects.go   the services as files
//	cluster.go   the services in a real API server
//	feed.go      the services in a feed
//
// All figures of a repetition are of one agent and one VPP. Sizes alternate, so that a busy machine
// does not favour one of them.
package main
