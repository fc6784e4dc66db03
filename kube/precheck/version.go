package precheck

import "k8s.io/apimachinery/pkg/util/version"

// Oldest is the first version of Kubernetes that the agent works with: earlier API servers cannot
// select Services by spec.clusterIP.
const Oldest = "1.31"

// TooOld is true for a gitVersion of an API server before Oldest. It is false for a text that is
// not a version.
func TooOld(gitVersion string) bool {
	got, err := version.ParseSemantic(gitVersion)
	return err == nil && got.LessThan(version.MustParseSemantic(Oldest+".0-0"))
}
