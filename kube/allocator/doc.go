// Package allocator writes into the status of Services which addresses of pools they have. One
// process of a cluster does so at a time (kube/leader).
//
// A term of leadership begins with consistent lists of all objects; nothing is remembered from
// before. Then each round is a pure plan of the objects that the caches have (kube/addresses), and
// its writes. The status of the Services is the only memory:
//
//   - A write has the version of the Service that it was planned for. Until the cache has another
//     version, its addresses count as given, whatever the answer was.
//   - An address goes to another Service only when no status has it any more.
//   - A term waits for its last writes, or gives them up before its Lease runs out.
//
// Lead belongs to one goroutine, which starts the writes of a round and waits for them. Status may
// be called by any goroutine.
package allocator
