package fleet

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// TestAskArchive: a command gets the address of a server that answers as the node did; its exit
// code is not explained a second time.
func TestAskArchive(t *testing.T) {
	n := &api.Dump{Name: "n1", Metrics: "troupe_ready 1\n"}
	for code, logged := range map[int]bool{0: false, 1: true} {
		err := askArchive(t.Context(), n, []string{"get", "services"}, cli.Streams{}, func(_ context.Context, args []string, _ cli.Streams) int {
			if got := strings.Join(args[:3], " "); got != "get services --address" {
				t.Errorf("arguments %q", args)
			}
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			r, err := client.Get("http://" + args[3] + "/metrics")
			if err != nil {
				t.Error(err)
				return code
			}
			defer r.Body.Close()
			if text, err := io.ReadAll(r.Body); err != nil || string(text) != n.Metrics {
				t.Errorf("metrics %q, %v", text, err)
			}
			return code
		})
		if cli.IsLogged(err) != logged || (err != nil) != logged {
			t.Errorf("exit code %d: error %v", code, err)
		}
	}
}
