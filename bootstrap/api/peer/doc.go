// Package peer says who has made a request, for audit records: on a unix socket the kernel knows
// the user and the process. It has no state; the context of a connection holds the answer.
package peer
