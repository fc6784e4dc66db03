// Package peer identifies the client of a request for audit records. On a unix socket the kernel
// knows the user and the process. The package has no state; the context of a connection holds the
// client.
package peer
