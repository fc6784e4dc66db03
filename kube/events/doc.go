// Package events reports the state of services to the users of a cluster as Kubernetes Events
// (events.k8s.io/v1) about Services and the Node. `kubectl describe service` and `kubectl events`
// show them.
//
//	Tracker, Diff   ServiceStatus -> its events; pure
//	aggregator      joins repetitions, limits events, and orders the writes; no I/O
//	Writer          the Recorder that writes to the API server
//	Log             the Recorder of an agent without an API server
//
// # Callers
//
// The actor that gets every messages.ServiceStatus owns a Tracker and passes the events to a
// Recorder. Other callers add HealthCheck, Quarantined, Released and Started. Recorder.Record takes
// a lock for a moment and returns; any goroutine may call it. One goroutine runs Writer.Run, which
// does the I/O, one request at a time.
//
// # The recorder of client-go
//
// The recorder of client-go (tools/events) does not fit. It names each event at random, so a
// restarted agent would write all standing problems again. It compares repetitions without their
// note, so a user would see only the first of two conflicts of one Service. It has no limit per
// object. This package uses client-go's REST client, token buckets, back-off and conventions.
//
// # Names, repetitions, restarts
//
// The name of an event follows from its content and from the number of its occurrence. A restarted
// agent therefore finds its own events: the API server answers "already exists". A state found at
// the start (Event.Standing) needs no further write. A change that occurs again is the next
// occurrence, an event of its own, at most once per ObjectInterval; changes in between are joined.
// An event that is the same on every node (Event.Shared: a conflict, a field that cannot be used)
// has one name in the whole cluster. The first node writes it, and each other node gets one refused
// request. This needs no chosen node, which could be down. Neither a restart of one agent nor of
// all agents causes a storm, because properties of every service are no events
// (Approximation.particular, ObjectError.general).
//
// # Limits
//
// A token bucket per object bounds new events; more events are dropped. A global token bucket
// bounds requests; more requests wait. At most MostEvents events are remembered; when all of them
// wait, new events are dropped. Drops are counted (Writer.Stats) and logged at most once a minute.
// A note with a part that changes all the time makes a new event each time, within the bucket of
// its object.
//
// # Outages
//
// When the API server does not answer, or answers 401, 429 or 5xx, Run waits and tries again. The
// delays grow, unless the server names one. An event that was not written within Window is dropped,
// because it is no news any more. A request that the server refuses for good (403, 422 ...) is
// dropped at once.
//
// # Shutdown
//
// Run returns when its context ends; waiting events are lost. The next start finds their states
// again.
package events
