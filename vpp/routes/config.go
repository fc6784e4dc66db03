package routes

// Config holds the settings of Plan.
type Config struct {
	// OtherPorts refuses the ports without a row of a cluster IP that has rows, also after
	// NAT44 has entered the address into the FIB; where one of its ports is to be dropped, all
	// of them are. It costs one route per cluster IP. Without it the route of the service
	// network refuses such a port until NAT44 enters the address, and VPP ignores its packets
	// from then on.
	OtherPorts bool
}
