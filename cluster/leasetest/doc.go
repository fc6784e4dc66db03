// Package leasetest has an API server for tests that knows Leases only, over HTTP on loopback. It
// refuses what the real one refuses: a name that exists (409 AlreadyExists), another resource
// version (409 Conflict, also as a precondition of a deletion), objects that do not exist, invalid
// metadata, namespaces that do not exist, and watches from a compacted version (410 Gone). A change
// without an effect keeps the resource version. Watches get bookmarks. The stories in test/agent
// hold the same clients against the real one.
//
// A Server runs from Start until the test ends. Stop takes it from the network, Start puts it back
// at the same address with its objects.
package leasetest
