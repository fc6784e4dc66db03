package bootstrap

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// mostMemory is the number of MiB that a connector may take, whatever its catalog answers.
const mostMemory = 256

// hostile is a malicious Consul with a connector that follows it. It has one honest service, a.
type hostile struct {
	*testing.T
	names  func(w io.Writer) // writes the names besides a, each behind a comma
	spoil  http.HandlerFunc  // answers for a service besides a
	server *httptest.Server
	dir    string
	child  *exec.Cmd
	out    bytes.Buffer // read when the child has ended
	asked  atomic.Int64 // number of requests for another service than a
}

// startHostile starts both.
func startHostile(t *testing.T, names func(w io.Writer), spoil http.HandlerFunc) *hostile {
	t.Helper()
	h := &hostile{T: t, names: names, spoil: spoil, dir: t.TempDir()}
	h.server = httptest.NewServer(http.HandlerFunc(h.answer))
	t.Cleanup(h.server.Close)
	token := filepath.Join(h.dir, "token")
	if err := os.WriteFile(token, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := filepath.Join(h.dir, "objects")
	if err := os.Mkdir(objects, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h.child = exec.Command(self)
	h.child.Args = []string{
		"troupe", "connector", "--source", "consul=" + h.server.URL, "--consul-token-file", token, "--sync-namespace", "outside", "--log-level", "debug",
		"--output", "direct", "--output-directory", objects, "--service-cidr", "10.96.0.0/16", "--http-address", "", "--control-socket", h.socket(),
	}
	h.child.Stdout, h.child.Stderr = &h.out, &h.out
	h.child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := h.child.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

// secret is the token of the connector.
const secret = "5ec7e7-70ce4-of-consul"

func (h *hostile) socket() string { return filepath.Join(h.dir, "s") }

// answer answers a request.
func (h *hostile) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("index") != "" {
		<-r.Context().Done()
		return
	}
	w.Header().Set("X-Consul-Index", "7")
	switch r.URL.Path {
	case "/v1/catalog/services":
		fmt.Fprint(w, `{"a":[]`)
		h.names(w)
		fmt.Fprint(w, `}`)
	case "/v1/health/service/a":
		fmt.Fprint(w, `[{"Service":{"ID":"a-1","Address":"192.0.2.1","Port":80}}]`)
	default:
		h.asked.Add(1)
		h.spoil(w, r)
	}
}

// serves waits until the honest service is served.
func (h *hostile) serves() {
	h.Helper()
	h.until("a is served", func() bool {
		_, err := os.Stat(filepath.Join(h.dir, "objects", "service-a.yaml"))
		return err == nil
	})
}

// until waits. The machine may stand still for a while: the limit is for a connector that hangs.
func (h *hostile) until(what string, is func() bool) {
	h.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			took := h.memory()
			_ = h.child.Process.Kill()
			_ = h.child.Wait()
			h.Fatalf("not so within 5 minutes, and %d MiB taken: %s\n%.4000s", took, what, h.out.String())
		}
	}
}

// get asks the connector.
func (h *hostile) get(path string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", h.socket())
	}}}
	answer, err := client.Get("http://connector" + path)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return ""
	}
	return string(body)
}

// memory returns the largest number of MiB that the connector has taken.
func (h *hostile) memory() int {
	h.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.child.Process.Pid))
	if err != nil {
		h.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		h.Fatal(err)
	}
	return kib >> 10
}

// end ends the connector by SIGTERM, which must not take long, and returns its log. The connector
// must not have taken too much memory.
func (h *hostile) end() string {
	h.Helper()
	took := h.memory()
	began := time.Now()
	if err := h.child.Process.Signal(syscall.SIGTERM); err != nil {
		h.Fatal(err)
	}
	killed := time.AfterFunc(20*time.Second, func() { _ = h.child.Process.Kill() })
	err := h.child.Wait()
	killed.Stop()
	ended := time.Since(began)
	h.Logf("%d MiB taken, ended within %s", took, ended.Round(time.Millisecond))
	if err != nil || ended > 5*time.Second {
		h.Errorf("ended after %s: %v\n%.4000s", ended, err, h.out.String())
	}
	if took >= mostMemory {
		h.Errorf("%d MiB taken, want less than %d", took, mostMemory)
	}
	return h.out.String()
}

// instance is one element of an answer about a service, about 1 KiB.
var instance = `{"Node":{"Node":"n","Address":"192.0.2.2"},"Service":{"ID":"i","Port":80,"Tags":["k8s","` + strings.Repeat("t", 900) + `"]},"Checks":[]},`

// endlessly writes an answer of 64 MB, or until the connector does not want more.
func endlessly(w io.Writer) {
	_, _ = io.WriteString(w, "[")
	repeat(w, strings.Repeat(instance, 64), 64<<20)
	_, _ = io.WriteString(w, "{}]")
}

// repeat writes a text again and again, so many bytes or until the connector does not want more.
func repeat(w io.Writer, text string, bytes int) {
	for n := 0; n < bytes; n += len(text) {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// many writes so many names.
func many(n int) func(w io.Writer) {
	return func(w io.Writer) {
		for i := range n {
			if _, err := fmt.Fprintf(w, `,"s%06d":["tag"]`, i); err != nil {
				return
			}
		}
	}
}

// TestHostileCatalog: whatever Consul answers, the connector takes little memory, serves the honest
// service, reports the error, and ends at once on a signal, while such answers flow.
func TestHostileCatalog(t *testing.T) {
	// members of gzip, which may follow each other
	bomb := [][]byte{zipped("["), zipped(strings.Repeat(instance, 1024))}
	large := func(w http.ResponseWriter, _ *http.Request) { endlessly(w) }
	const tooLarge = "the answer is too large: more than 8388608 bytes"
	crowd := 40 // services with such answers
	if testing.Short() {
		crowd = 3 // the race detector takes ten times as long
	}
	for _, c := range []struct {
		what  string
		names int
		spoil http.HandlerFunc
		want  string // is said
		times int
	}{
		{"answers of 64 MB", crowd, large, tooLarge, crowd},
		{"answers of 64 MB that have begun", 40, large, "", 16},
		{"elements of 64 MB", crowd, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `[{"Service":{"Tags":[`)
			repeat(w, strings.Repeat(`"",`, 1<<14), 64<<20)
		}, "an element of the answer is too large: more than 1048576 bytes", crowd},
		{"1,000,000 names", 1_000_000, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[]") }, "more than 10000 services", 1},
		{"gzip bombs", crowd, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb[0])
			repeat(w, string(bomb[1]), 512*len(bomb[1]))
		}, tooLarge, crowd},
		{"answers without an end", 40, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "[")
			for r.Context().Err() == nil {
				fmt.Fprint(w, instance)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}, "", 15},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			h := startHostile(t, many(c.names), c.spoil)
			if c.want == "" {
				h.until("answers are under way", func() bool { return h.asked.Load() >= int64(c.times) })
			} else {
				h.until(c.want, func() bool { return strings.Count(h.get("/api/v1/connector"), c.want) >= c.times })
				h.serves()
			}
			h.end()
		})
	}
}

// zipped returns a text as a member of gzip.
func zipped(text string) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = io.WriteString(zip, text)
	_ = zip.Close()
	return out.Bytes()
}

// TestHostileWords: a broken answer of a server may repeat the token, so no log and no answer of
// the connector contains it.
func TestHostileWords(t *testing.T) {
	sized := func(header, body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\n%sContent-Length: %d\r\n\r\n%s", header, len(body), body)
	}
	const chunked = "HTTP/1.1 200 OK\r\nX-Consul-Index: 7\r\nTransfer-Encoding: chunked\r\n\r\n"
	raw := []string{
		"HTTP/1.1 403 " + secret + "\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 599 " + secret + "\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 500 X\r\nContent-Length: 100\r\n\r\n" + secret,
		"HTTP/1.1 " + secret + "\r\n\r\n",
		secret + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX-Consul-Index: " + secret + "\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 307 X\r\nLocation: http://[" + secret + "\r\nContent-Length: 0\r\n\r\n",
		sized("Content-Encoding: gzip\r\n", secret),
		chunked + secret + "\r\n",
		chunked + "2\r\n[]\r\n0\r\n" + secret + "\r\n\r\n",
		sized("", "["+secret),
		sized("", `"`+secret+`"`),
		sized("", `[{"Service":{"Port":"`+secret+`"}}]`),
		sized("", "[]") + "HTTP/1.1 200 " + secret, // was not asked for
	}
	h := startHostile(t, many(len(raw)), func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscanf(r.URL.Path, "/v1/health/service/s%d", &n)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, raw[n])
		time.Sleep(100 * time.Millisecond) // until it is read
		_ = conn.Close()
	})
	failed := len(raw) - 1 // all except the last one
	h.until("all are read", func() bool {
		return strings.Count(h.get("/api/v1/connector"), "get /v1/health/service/s") == failed
	})
	said := h.get("/api/v1/connector")
	for _, want := range []string{"s000000: status 403 Forbidden", "s000001: status 599"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said: %s", want, said)
		}
	}
	for _, path := range []string{
		"/readyz?verbose", "/metrics", "/api/v1/connector", "/api/v1/actors", "/api/v1/tree", "/api/v1/actors/connector/sources/consul/state",
		"/api/v1/actors/connector/aggregator/state", "/api/v1/actors/connector/sources/consul/failures",
	} {
		if answer := h.get(path); answer == "" || strings.Contains(answer, secret) {
			t.Errorf("GET %s: %s", path, answer)
		}
	}
	if log := h.end(); log == "" || strings.Contains(log, secret) {
		t.Errorf("log: %s", log)
	}
}
