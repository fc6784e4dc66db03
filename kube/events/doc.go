// Package events tells the users of a cluster, in its own terms, what becomes of their services: Kubernetes Events (events.k8s.io/v1) on
// Services and on the Node, which `kubectl describe service` and `kubectl events` show.
//
//	Tracker, Diff   ServiceStatus -> which events it is worth; pure
//	book            which event is a repetition, which is one too many, what is due when; pure, time is an argument
//	Writer          the Recorder that writes to the API server
//	Log             the Recorder of an agent without an API server
//
// # Who calls
//
// One actor that sees every messages.ServiceStatus owns a Tracker and passes what Observe returns to a Recorder; whoever watches health
// checks, quarantines or the start adds the events of HealthCheck, Quarantined, Released and Started. Recorder.Record takes a lock for a moment
// and returns; any goroutine may call it. One goroutine runs Writer.Run, which does the I/O, one request at a time.
//
// # Why not the recorder of client-go
//
// client-go's tools/events is made for few events: it recognises repetitions by object, reason and action but not by note, so that of two conflicts on one
// Service only the first would be seen; it has no rate limit, one goroutine per event while the API server is away, drops silently, gives up
// at every answer of the server that is an error (also 429 and 500), and names the host instead of the node. Of it the typed client, the errors and the
// conventions are used; the names, limits and the order are here.
//
// # Series, names, restarts
//
// The same event again (object, type, reason, action and note) makes no new object: it raises series.count, written once per
// SeriesInterval. The name of an object follows from its content, so that a restarted agent which finds the same state finds its
// own event too: the API server answers "already exists". A state that was merely found (Event.Standing) is content with that; something that
// happened continues the count. Events that every node would write alike (Event.Shared: a conflict, a field that cannot be used) have one
// name in the whole cluster: the first node writes it, the others find it there. There is no storm, neither after a restart of
// one agent nor after one of all nodes.
//
// # Limits
//
// A token bucket per object bounds new events (they are dropped when it is empty), a global one bounds requests (they wait). At most MaxSeries
// events are remembered; when all of them wait, new ones are dropped. Everything dropped is counted (Writer.Stats) and logged, once a minute
// at most. What remains possible: an event whose object was removed by its time to live (1 hour by default) is written again by
// a restarted agent, because the state still stands; counts of different agent runs are added up, but those of the last SeriesInterval before an
// end are lost; a note that contains something that changes all the time makes a new object each time, as far as the bucket of its object goes.
//
// # Outages
//
// When the API server does not answer, or answers 401, 429 or 5xx, Run waits with growing delays (or as long as the server says) and tries
// again; nobody notices but the queue. An event that got no place within Window is dropped: it would be news of the past. A request
// that the server refuses for good (403, 422 ...) is dropped at once.
//
// # Shutdown
//
// Run returns when its context ends; what waits is lost. It follows from states that are found again at the next start.
package events
