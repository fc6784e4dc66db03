// Package connector runs the catalog connector, `troupe connector`: it parses the sources on the
// command line, makes the store, the actors and the HTTP server, and ends them in the opposite
// order.
//
// Start returns after the actors have started; Wait and Close belong to one caller. Readiness and
// metrics are read from the Board of the actors, so that they have an answer even when actors hang.
package connector
