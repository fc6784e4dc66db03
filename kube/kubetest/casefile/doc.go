// Package casefile reads the acceptance cases of Service semantics strictly: clusters, and the rows
// and packets that a node must have for them. Its types mirror the file; the README beside the file
// explains them (testdata). World holds the normalised objects of a case. Only tests import it.
package casefile
