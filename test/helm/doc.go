// Package helm installs the chart of deploy/helm into a cluster of a test, as the command helm
// does: the same library, with releases in Secrets of the namespace. Everything is synchronous.
package helm
