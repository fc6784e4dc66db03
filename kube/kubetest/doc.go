// Package kubetest helps to test sources and their listeners: Mirror is a Sink that holds what a
// receiver would hold and checks the rules of kube.Sink on the way; Cases and Dump give the objects
// of the acceptance material. Only tests import it.
package kubetest
