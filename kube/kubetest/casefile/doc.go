// Package casefile reads the acceptance cases of Service semantics strictly: clusters, and the rows
// and packets that a node must have for them. Its types mirror the file; the README beside the file
// explains them. Only tests import it.
package casefile
