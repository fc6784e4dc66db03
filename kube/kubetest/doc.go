// Package kubetest helps to test sources and their listeners. Mirror is a Sink that keeps the
// delivered state and checks the rules of kube.Sink. Cases and Dump return the objects of
// casefile. Only tests import it.
package kubetest
