// Package casefile reads the acceptance cases of Service semantics, strictly and as they are:
// clusters, and what a node has to make of them. Its types are those of the file; the README beside
// the file explains them. Only tests import it.
package casefile
