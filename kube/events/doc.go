// Package events tells the users of a cluster, in its own terms, the state of their services:
// Kubernetes Events (events.k8s.io/v1) on Services and on the Node, which `kubectl describe
// service` and `kubectl events` show.
//
//	Tracker, Diff   ServiceStatus -> the events it is worth; pure
//	aggregator      joins repetitions into series, limits them, and orders the writes; no I/O
//	Writer          the Recorder that writes to the API server
//	Log             the Recorder of an agent without an API server
//
// # Callers
//
// The actor that sees every messages.ServiceStatus owns a Tracker and passes the events to a
// Recorder; the callers that watch health checks, quarantines and the start add HealthCheck,
// Quarantined, Released and Started. Recorder.Record takes a lock for a moment and returns; any
// goroutine may call it. One goroutine runs Writer.Run, which does the I/O, one request at a time.
//
// # The recorder of client-go
//
// client-go's tools/events names each event at random, so that a restarted agent would write all
// standing problems again; it compares repetitions without their note, so that of two conflicts on
// one Service only the first would be seen; and it has no limit per object. Its REST client, token
// buckets, back-off and conventions are used here.
//
// # Series, names, restarts
//
// A repeated event (same object, type, reason, action and note) raises series.count, at most once
// per SeriesInterval. The name of an event follows from its content, so that a restarted agent
// finds its own event: the API server answers "already exists". For a state that was found
// (Event.Standing) that is the end; for a new occurrence the count continues. An event that every
// node would write alike (Event.Shared: a conflict, a field that cannot be used) has one name in
// the whole cluster: the node that comes first writes it, for the others it exists already. No node
// is chosen, so none that is down is missed; an event costs each other node one refused request.
// There is no storm after a restart, neither of one agent nor of all, because nothing is an event
// that the renderer does with every service (Approximation.particular, ObjectError.general).
//
// # Limits
//
// A token bucket per object bounds new events (more are dropped), a global one bounds requests
// (they wait). At most MaxSeries events are remembered; when all of them wait, new ones are
// dropped. Drops are counted (Writer.Stats) and logged, once a minute at most. A note with a part
// that changes all the time makes a new event each time, within the bucket of its object.
//
// # Outages
//
// When the API server does not answer, or answers 401, 429 or 5xx, Run waits with growing delays,
// or as long as the server says, and tries again. An event that was not written within Window is
// dropped: it is no news any more. A request that the server refuses for good (403, 422 ...) is
// dropped at once.
//
// # Shutdown
//
// Run returns when its context ends; waiting events are lost. They follow from states that are
// found again at the next start.
package events
