package kube

// Feed is a source that is running, as the actors see it. kube/relay makes one of a Source.
type Feed interface {
	// Listen makes the sink the listener, in the place of an earlier one: it gets the last Health at once and a Snapshot soon. It does not
	// block. leave ends the listening, unless another listener has taken its place.
	Listen(sink Sink) (leave func())
	// Refresh asks for a Snapshot soon; it does not block and may be called at any time, from any goroutine.
	Refresh()
}
