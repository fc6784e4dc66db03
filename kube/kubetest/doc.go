// Package kubetest helps to test sources and their listeners. Mirror is a Sink that keeps the
// delivered state and checks the rules of kube.Sink. Load reads the acceptance cases of Service
// semantics strictly: clusters, and the rows and packets that a node must have for them. Its types
// mirror the file; the README beside the file explains them (testdata). World holds the normalised
// objects of a case, DumpObjects the objects of a real cluster. Only tests import it.
//
// Clientset is the fake clientset of client-go with only the kinds that the agent uses. Forward
// answers as a kubelet that forwards ports.
package kubetest
