package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// TestTraceOfAChangeReachesTheCollector: from the change in the source to the operations on VPP and
// the end, as one trace.
func TestTraceOfAChangeReachesTheCollector(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read traces: %v", err)
		}
		bodies <- string(content)
	}))
	defer collector.Close()
	cfg := crowd(t, 2)
	cfg.API.OTLPEndpoint = collector.URL
	a := run(t, cfg)
	ready(t, a)
	file := filepath.Join(strings.TrimPrefix(cfg.Kubernetes.Source, config.SourceFilesPrefix), "all.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(content), "10.1.0.4]", "10.1.0.5]", 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	got := ""
	for !strings.Contains(got, `"render agent/dataplane/nat44"`) {
		// at the start the rows are those of a resync
		select {
		case got = <-bodies:
		case <-time.After(patience):
			t.Fatal("no trace of the change")
		}
	}
	for _, want := range []string{`"k8s.node.name","value":{"stringValue":"n1"}`, `"change shop/s0"`, "10.1.0.5:8080", "VPP holds what is wanted"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}
