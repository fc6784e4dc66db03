// Package e2e plays Kubernetes' own end-to-end tests of SIG network on a cluster whose pods are
// behind a real VPP:
//
//	TROUPE_VPP_BIN=... TROUPE_VPP_PLUGINS=... go -C test test ./e2e -timeout 60m -v
//
// By default it plays Services [Conformance], with -campaign everything that concerns services, and
// with -focus the tests whose names match. The first build takes up to 20 minutes. The results of
// the tests that were played are rows of docs/conformance.md. Reasons of tests that do not pass are
// in reasons.yaml.
package e2e
