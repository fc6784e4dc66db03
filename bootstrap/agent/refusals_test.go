package agent

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
)

// TestHostsOfTheAgent: the name of the node and the names of the configuration are hosts of the
// read-only listener; the health port answers whatever a load balancer calls it. A refusal is
// counted.
func TestHostsOfTheAgent(t *testing.T) {
	cfg := everything(t)
	cfg.API.HTTPAllowedHosts, cfg.API.HealthzBindAddress = []string{"troupe.example.com"}, "127.0.0.1:0"
	a := run(t, cfg)
	eventually(t, "the health port is open", func() bool { return healthAddress(a) != "" })
	status := func(address, host string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.Close = host, true
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	_, port, _ := net.SplitHostPort(a.HTTPAddress())
	for host, want := range map[string]int{
		a.HTTPAddress(): 200, "shop-a:" + port: 200, "localhost:" + port: 200, "192.168.16.1:" + port: 200, "troupe.example.com": 200,
		"rebind.example:" + port: 403, "shop-b:" + port: 403,
	} {
		if got := status(a.HTTPAddress(), host); got != want {
			t.Errorf("host %s: %d, want %d", host, got, want)
		}
		if got := status(healthAddress(a), host); got != 200 {
			t.Errorf("health, host %s: %d", host, got)
		}
	}
	if got := scrape(t, a).find(`troupe_http_refused_total{listener="http",why="host"}`); got != "2" {
		t.Errorf("%s refusals are counted, want 2", got)
	}
}

// TestRefusalsInTheLog: the log has the first refusal of a kind at once and then one line a minute,
// however many there are.
func TestRefusalsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		r := newRefusals(metrics.New(), slog.New(slog.NewTextHandler(&text, nil)))
		host := server.Refusal{Listener: "http", Why: "host", Client: "192.0.2.1:4711", Text: `host "a.example" is not allowed`}
		for range 100 {
			r.note(host)
		}
		r.note(server.Refusal{Listener: "healthz", Why: "connections", Text: "too many"})
		time.Sleep(time.Minute)
		r.note(host)
		var got []string
		for line := range strings.Lines(text.String()) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), " level=")
			got = append(got, line)
		}
		want := []string{
			`WARN msg="HTTP client refused" listener=http why=host client=192.0.2.1:4711 err="host \"a.example\" is not allowed" unlogged=0`,
			`WARN msg="HTTP client refused" listener=healthz why=connections client="" err="too many" unlogged=0`,
			`WARN msg="HTTP client refused" listener=http why=host client=192.0.2.1:4711 err="host \"a.example\" is not allowed" unlogged=99`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
