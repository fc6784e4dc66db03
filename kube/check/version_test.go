package check

import (
	"os"
	"strings"
	"testing"
)

func TestTooOld(t *testing.T) {
	for text, want := range map[string]bool{
		"v1.30.14": true, "v1.30.14-gke.1": true, "v1.9.0": true, "v1.31.0-alpha.1": false, "v1.31.0": false, "v1.36.3+k3s1": false, "v2.0.0": false, "": false, "dev": false,
	} {
		if TooOld(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// TestChartNeedsOldest: the chart of Helm refuses the same versions.
func TestChartNeedsOldest(t *testing.T) {
	chart, err := os.ReadFile("../../deploy/helm/Chart.yaml")
	if err != nil || !strings.Contains(string(chart), `kubeVersion: ">=`+Oldest+`.0-0"`) {
		t.Errorf("%v, without %s:\n%s", err, Oldest, chart)
	}
}
