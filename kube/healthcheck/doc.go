// Package healthcheck answers those who ask whether this node should get traffic, in the words of kube-proxy:
//
//	Servers     the HTTP servers of spec.healthCheckNodePort: has this node endpoints of its own for this service?
//	NodeHealth  /healthz and /livez (kube-proxy: port 10256): does this node keep up with the cluster, and will it stay?
//	NodeServer  the HTTP server for it, which waits for its port as long as somebody else has it
//
// What is answered is decided by pure functions: service.HealthAnswer and Evaluate. Who listens where is decided by plan, pure as well.
//
// # Who calls
//
// Whoever knows the views of all services calls Servers.Set with the complete list of checks (Checks takes them out of a view) whenever
// one of them changed. Set takes a lock for a moment and returns; any goroutine may call it. The latest list wins, a list in between may never be
// seen. One goroutine runs Servers.Run; it alone opens and closes, and it alone calls Config.OnProblem. Another one
// runs NodeServer.Run.
//
// # Addresses
//
// There is one listener per listen address ("ip:port"), owned by one service: of several that claim it by the oldest one, then the one with
// the smallest key, as everywhere in Troupe. The others are reported and take over without a gap as soon as the owner lets go. An address
// that cannot be listened on is tried again with growing delays, until it works or is not wanted any more; the other addresses
// do not notice. kube-proxy tries again at its next sync only and gives up all addresses of a service together.
//
// # Shutdown
//
// A closed listener accepts nothing from that moment on; requests under way get Config.CloseTimeout to end, then their connections are
// cut. Run returns when its context has ended and every goroutine of this package has.
package healthcheck
