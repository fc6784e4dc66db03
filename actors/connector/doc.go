// Package connector is the tree of the catalog connector, a process of its own:
//
//	connector   [ordered]
//	|- sink         the store and the term of leadership; makes the writes, retries each service
//	                on its own
//	|- aggregator   what all sources want together: gates, objects, differences
//	|- sources
//	|  |- consul ...    one actor for each source
//
//	source -> Published -> aggregator -> Planned -> sink -> store -> changed -> aggregator
//
// Everything is level-triggered: a pass of the aggregator compares all services of the sources with
// all objects in the store, and its Planned replaces the one before. A pass follows each snapshot,
// each change in the store, each write and the beginning of a term, see kube/connector.Coalescer. A
// restarted aggregator asks the sources and the sink again; its gates delete nothing before a
// complete snapshot has come. A restarted sink begins with a new store.
//
// A connector that does not lead does everything except the writes, so that it can take over at
// once.
//
// Only package bootstrap imports this package. Stop ends the goroutines of the sources, the store
// and the writes. The next term completes services whose writes were interrupted.
package connector
