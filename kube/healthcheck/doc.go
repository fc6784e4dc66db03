// Package healthcheck tells load balancers and the kubelet whether this node should get traffic, as
// kube-proxy does:
//
//	Servers     the HTTP servers of spec.healthCheckNodePort: has this node endpoints of its own
//	            for this service?
//	NodeHealth  /healthz and /livez (kube-proxy: port 10256): does this node keep up with the
//	            cluster, and will it stay?
//	NodeServer  the HTTP server for it, which waits while its port is taken
//
// Pure functions decide the answers (service.HealthAnswer, Evaluate) and the owner of each address
// (plan).
//
// # Callers
//
// The actor that has the views of all services calls Servers.Set with all checks whenever a check
// has changed. Checks returns the checks of a view. Set takes a lock for a moment and returns; any
// goroutine may call it. The latest list wins, and a list in between may be skipped. A goroutine of
// each address serves it (socket); only the goroutine of Servers.Run adds and removes addresses and
// calls Config.OnProblem. Another goroutine runs NodeServer.Run.
//
// # Addresses
//
// There is one listener per listen address ("ip:port"), and one service owns it: the oldest that
// claims it, then the one with the smallest key, as everywhere in Troupe. The other services are
// reported, and one of them takes over without a gap when the owner gives the address up. If
// listening fails, Servers tries again with growing delays, until it works or no service wants the
// address any more; other addresses are not affected. kube-proxy tries again only at its next sync,
// and gives up all addresses of a service together.
//
// # Limits
//
// Every client that reaches the node can connect, so the connections of an address are limited
// (Bound). Above the limit a new connection replaces the longest idle one, so that idle clients
// cannot keep a load balancer out. The servers do not check the Host of a request: load balancers
// send any Host, and a web page in a browser may read all answers.
//
// # Shutdown
//
// A closed listener accepts no more connections. Requests under way get Config.CloseTimeout to end,
// then their connections are closed. Run returns when its context and every goroutine of this
// package have ended.
package healthcheck
