// Package informers is the kube.Source that watches the API server, with the informers of
// client-go. It watches all Nodes, the Pods of this node, and ServiceCIDRs if the API has them. It
// watches all Services except headless ones, ExternalNames and Services of another proxy, and all
// EndpointSlices except slices of headless services.
//
// # Concurrency
//
//	informer goroutines                  worker (goroutine of Run)
//	  reflector -> normalize -> cache
//	  handler   -> queue.add(key)        -> cache -> Store -> Commit -> Sink
//	  request   -> health.pass -> API server
//	  watch     -> health.set            -> Sink.Health
//
// The transform of the cache normalises an object, so that the cache holds only the normalised
// form. Handlers only note the key of a changed object. The worker reads the cache, so many changes
// of one object cost one look, and an object missing from the cache is deleted. Only the worker
// calls the Sink. All goroutines end with the context of Run, and Run waits for them.
//
// # Start, relist, outage
//
// The source delivers one Snapshot when all kinds have been listed, or ServiceCIDRs are known to be
// missing, and the handlers have seen the lists. It delivers nothing earlier. When a watch expires
// (410 Gone) or breaks, client-go lists again and calls the handlers for the differences, deletions
// included. In the meantime the cache and everything delivered stay, and Sink.Health names the
// kinds that are not being watched, with the reason.
//
// While the API server does not answer, or refuses the credentials, health repeats one request
// and lets the others wait, so that no reflector backs off. Each request is sent once, and
// kube/apiserver classifies its outcome. client-go would repeat it for up to two minutes and then
// return an empty watch without an error. sight decides when a resource counts as watched. observed
// finds the error that ended a watch. HTTP/2 pings end a watch that has become silent. diagnose
// explains an error to an operator, health joins the explanations of all kinds, outageLog logs each
// outage once.
//
// # Filtering
//
// The API server filters by the selectors. The worker filters again (normalize.Selected*): an
// object may stop matching with the very event that delivers it, and not every server implements
// every selector.
package informers
