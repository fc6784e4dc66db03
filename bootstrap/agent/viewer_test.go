package agent

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// BenchmarkViewer measures the processor time of an agent with 10,000 services, in percent of one
// core: with and without one browser on the tree, while nothing changes and while one service
// changes every second. The browser is in the same process, and does what the script of the page
// does.
func BenchmarkViewer(b *testing.B) {
	cfg := crowd(b, 10_000)
	a, err := Start(cfg, quiet())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			b.Error(err)
		}
	}()
	for !a.Backend().Readiness().Ready {
		if err := b.Context().Err(); err != nil {
			b.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	changing := filepath.Join(strings.TrimPrefix(cfg.Kubernetes.Source, config.SourceFilesPrefix), "one.yaml")
	for _, changes := range []bool{false, true} {
		for _, path := range []string{"", "/", "/tree", "/services", "/actors", "/events"} {
			b.Run(fmt.Sprintf("changes=%t/%s", changes, cmp.Or(path, "nobody")), func(b *testing.B) {
				ctx, leave := context.WithCancel(b.Context())
				var all sync.WaitGroup
				defer all.Wait()
				defer leave()
				if path != "" {
					all.Go(func() { view(ctx, b, "http://"+a.HTTPAddress(), path) })
				}
				time.Sleep(time.Second)
				before, begin := processorTime(b), time.Now()
				for b.Loop() {
					for n := range 10 {
						if changes {
							if err := os.WriteFile(changing, fmt.Appendf(nil, one, 80+n), 0o600); err != nil {
								b.Fatal(err)
							}
						}
						time.Sleep(time.Second)
					}
				}
				b.ReportMetric(100*float64(processorTime(b)-before)/float64(time.Since(begin)), "%core")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// one is a service whose port changes.
const one = `apiVersion: v1
kind: Service
metadata: {name: one, namespace: shop, uid: one}
spec: {clusterIP: 10.96.200.1, clusterIPs: [10.96.200.1], ports: [{port: %d, protocol: TCP}]}
`

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// view loads a document, and again when the stream says that something has happened, until ctx
// ends.
func view(ctx context.Context, b *testing.B, server, path string) {
	ask := func(path string) io.ReadCloser {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, http.NoBody)
		if err != nil {
			b.Error(err)
			return nil
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			if ctx.Err() == nil {
				b.Error(err)
			}
			return nil
		}
		return response.Body
	}
	news := make(chan struct{}, 1)
	news <- struct{}{}
	go func() {
		for {
			body := ask("/live")
			if body == nil {
				return
			}
			for lines := bufio.NewScanner(body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "data: ") {
					select {
					case news <- struct{}{}:
					default:
					}
				}
			}
			_ = body.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		began := time.Now()
		if body := ask(path); body != nil {
			_, _ = io.Copy(io.Discard, body)
			_ = body.Close()
		}
		time.Sleep(min(max(250*time.Millisecond, 100*time.Since(began)), 3*time.Second))
	}
}
