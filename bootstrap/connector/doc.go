// Package connector runs the catalog connector, `troupe connector`: the published services of a
// Source become Services and EndpointSlices.
//
//	kube/connector/catalog  the model of a catalog and its sources: YAML, Consul, DNS
//	kube/connector/render   the wanted objects, and the writes that create them; pure
//	kube/connector/store    the objects in the API server or in a directory
//
// This package parses the sources on the command line, makes the store, the actors and the HTTP
// server, and ends them in the opposite order. Start returns after the actors have started; Wait
// and Close belong to one caller. The actors are:
//
//	connector   [ordered]
//	|- sink         the store and the term of leadership; makes the writes, retries each service
//	                on its own
//	|- aggregator   what all sources want together: gates, objects, differences
//	|- sources
//	|  |- consul ...    one actor for each source
//
//	source -> published -> aggregator -> planned -> sink -> store -> changed -> aggregator
//
// Everything is level-triggered: a pass of the aggregator compares all services of the sources with
// all objects in the store, and its result replaces the one before. A pass follows each snapshot,
// each change in the store, each write and the beginning of a term (see burst). A restarted
// aggregator asks the sources and the sink again; its gates delete nothing before a complete
// snapshot has come. A restarted sink begins with a new store.
//
// A connector that does not lead does everything except the writes, so that it can take over at
// once. The end of the process ends the writes; the next term completes interrupted ones.
package connector
