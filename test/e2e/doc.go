// Package e2e plays Kubernetes' own end-to-end tests of SIG network on a cluster whose pods are
// behind a real VPP, with load-balancer addresses of troupe addresses for which VPP answers:
//
//	TROUPE_VPP_BIN=... TROUPE_VPP_PLUGINS=... go -C test test ./e2e -timeout 3h -v
//
// By default it plays Services [Conformance], with -focus the tests whose names match, and with
// -campaign everything that concerns services, of which -run TestKubernetes/granular is a part. The
// first build takes up to 20 minutes. The results of the tests that were played are rows of
// docs/conformance.md. Reasons of tests that do not pass are in reasons.yaml. A reason that begins
// with "by chance" belongs to a test that may also pass.
//
// With -kube-proxy, which needs no VPP, it plays the tests whose rows do not pass on the same nodes
// with bridges of the kernel and kube-proxy.
package e2e
