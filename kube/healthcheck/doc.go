// Package healthcheck answers load balancers and the kubelet whether this node should get traffic,
// as kube-proxy does:
//
//	Servers     the HTTP servers of spec.healthCheckNodePort: has this node endpoints of its own
//	            for this service?
//	NodeHealth  /healthz and /livez (kube-proxy: port 10256): does this node keep up with the
//	            cluster, and will it stay?
//	NodeServer  the HTTP server for it, which waits while its port is taken
//
// Pure functions decide the answers (service.HealthAnswer, Evaluate) and which service listens on
// which address (plan).
//
// # Callers
//
// The actor that has the views of all services calls Servers.Set with the complete list of checks
// (Checks takes them out of a view) whenever one of them changed. Set takes a lock for a moment and
// returns; any goroutine may call it. The latest list wins, a list in between may be skipped. One
// goroutine runs Servers.Run; it alone opens and closes, and it alone calls Config.OnProblem.
// Another one runs NodeServer.Run.
//
// # Addresses
//
// There is one listener per listen address ("ip:port"), owned by one service: of several that claim
// it by the oldest one, then the one with the smallest key, as everywhere in Troupe. The others are
// reported and take over without a gap as soon as the owner closes it. An address that cannot be
// listened on is tried again with growing delays, until it works or is not wanted any more; the
// other addresses are not affected. kube-proxy tries again at its next sync only and gives up all
// addresses of a service together.
//
// # Limits
//
// Every client that reaches the node can connect, so the connections of an address are limited
// (connlimit): above the limit a new one replaces the one that has been idle for the longest time,
// so that idle clients cannot keep a load balancer out. The servers do not look at the Host of a
// request: load balancers send what they like, and the answers hold nothing that a page in a
// browser should not read.
//
// # Shutdown
//
// A closed listener accepts nothing from that moment on; requests under way get Config.CloseTimeout
// to end, then their connections are cut. Run returns when its context has ended and every
// goroutine of this package has.
package healthcheck
