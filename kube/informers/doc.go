// Package informers is the kube.Source that watches the API server, with the informers of
// client-go: Services that are neither headless nor of type ExternalName and not of another proxy,
// EndpointSlices that are not of a headless service, all Nodes, the Pods of this node, and, where
// the API has them, ServiceCIDRs.
//
// # Concurrency
//
//	informer goroutines            worker (goroutine of Run)
//	  reflector -> cache
//	  handler   -> queue.add(key)  -> cache -> normalize -> Store -> Commit -> Sink
//	  request   -> gate -> API server
//	  watch     -> health.set      -> Sink.Health
//
// Handlers only note the key of what changed; the worker reads the cache, so many changes of one
// object cost one look, and a deletion is simply an object that is not there. The worker is the
// only one that calls the Sink. Everything ends with the context of Run, which waits for it.
//
// # Start, relist, outage
//
// Nothing is delivered before all kinds have been listed and their handlers have seen the list, or
// ServiceCIDRs are known to be missing; then one Snapshot. When a watch expires (410 Gone) or
// breaks, client-go lists again and calls the handlers for what differs, deletions included; in the
// meantime the cache and everything delivered stay, and Sink.Health says which kind is not being
// watched, and why.
//
// While the API server does not answer, or refuses the credentials, the gate has one request
// repeated and the others wait, so that no reflector backs off. Each request is made once, and is
// judged in kube/apiserver, where it is made: client-go would repeat it for up to two minutes and
// then return an empty watch without an error. sight says from when on a watch counts, observed
// what it ended with; HTTP/2 pings end one that has become silent. diagnose says what an error
// means for an operator, health joins that for all kinds, outageLog writes it into the log once.
//
// # Filtering
//
// The API server filters by the selectors. The worker filters again (normalize.Selected*), since an
// object may have stopped to match with the same event that brings it, and not every server
// implements every selector.
package informers
