// Package leasetest is an API server for tests that has only Leases, over HTTP on loopback. It
// refuses the same requests as the real API server. These are a name that exists (409
// AlreadyExists), another resource version (409 Conflict, also as a precondition of a deletion),
// missing objects and namespaces, invalid metadata, and watches from a compacted version (410
// Gone). A change without an effect keeps the resource version. Watches get bookmarks. The stories
// in test/agent run the same clients against a real API server.
//
// A Server runs from New until the test ends. Stop takes it off the network, Start puts it back at
// the same address with its objects.
package leasetest
