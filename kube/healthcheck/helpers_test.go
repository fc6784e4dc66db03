package healthcheck

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// host is a machine whose addresses and ports are mapped to real sockets on loopback. Like the
// operating system it refuses a port that another listener or another program has.
type host struct {
	mu       sync.Mutex
	real     map[string]net.Addr // open listeners, by wanted address
	networks map[string]string
	taken    map[string]error
	opened   map[string]int
}

func newHost() *host {
	return &host{real: map[string]net.Addr{}, networks: map[string]string{}, taken: map[string]error{}, opened: map[string]int{}}
}

// listen replaces net.Listen.
func (h *host) listen(network, address string) (net.Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.taken[address]; err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	if h.real[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: syscall.EADDRINUSE}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.real[address], h.networks[address] = l.Addr(), network
	h.opened[address]++
	return &hostListener{Listener: l, host: h, address: address}, nil
}

// hostListener frees its wanted address when it is closed.
type hostListener struct {
	net.Listener
	host    *host
	address string
	once    sync.Once
}

func (l *hostListener) Close() error {
	l.once.Do(func() {
		l.host.mu.Lock()
		defer l.host.mu.Unlock()
		delete(l.host.real, l.address)
	})
	return l.Listener.Close()
}

// take makes a port fail to open; nil frees it.
func (h *host) take(address string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken[address] = err
}

// at returns the real address of a wanted address; "" = no listener.
func (h *host) at(address string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.real[address]; a != nil {
		return a.String()
	}
	return ""
}

// listening lists the wanted addresses that have a listener, with the number of times they were
// opened.
func (h *host) listening() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for address := range h.real {
		out[address] = h.opened[address]
	}
	return out
}

// world is a host with running servers.
type world struct {
	*testing.T
	host    *host
	servers *Servers
	sets    uint64

	mu       sync.Mutex
	problems []Problem
}

// start runs servers on a new host until the test ends.
func start(t *testing.T, cfg Config) *world {
	t.Helper()
	w := &world{T: t, host: newHost()}
	if cfg.Listen == nil {
		cfg.Listen = w.host.listen
	}
	cfg.Log = slog.New(slog.DiscardHandler)
	cfg.OnProblem = func(p Problem) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.problems = append(w.problems, p)
	}
	if cfg.RetryMin == 0 {
		cfg.RetryMin, cfg.RetryMax = time.Millisecond, 10*time.Millisecond
	}
	w.servers = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.servers.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if open := w.host.listening(); len(open) > 0 {
			t.Errorf("left open: %v", open)
		}
	})
	return w
}

// set calls Set of the servers and waits until it has taken effect.
func (w *world) set(checks ...Check) {
	w.Helper()
	w.sets++
	w.servers.Set(checks)
	w.until("the list has taken effect", func(s Status) bool { return s.Applied >= w.sets })
}

// until waits for a state of the servers.
func (w *world) until(what string, condition func(Status) bool) {
	w.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition(w.servers.Status()) {
		if time.Now().After(deadline) {
			w.Fatalf("waited too long until %s: %+v", what, w.servers.Status())
		}
		time.Sleep(time.Millisecond) // real sockets have no virtual time
	}
}

// told returns the calls of OnProblem so far, one line each.
func (w *world) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, p := range w.problems {
		line := fmt.Sprintf("%s %d %s: %v", p.Service, p.Port, p.Address, p.Err)
		if p.Err == nil {
			line = fmt.Sprintf("%s %d %s: over, withdrawn %t", p.Service, p.Port, p.Address, p.Withdrawn)
		}
		lines = append(lines, line)
	}
	return lines
}

// answer is the answer that a client gets.
type answer struct {
	status int
	header http.Header
	body   string
}

// client never keeps a connection, so that every request goes to the current listener.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

// ask sends one request to a wanted address.
func (w *world) ask(method, address, path string) answer {
	w.Helper()
	real := w.host.at(address)
	if real == "" {
		w.Fatalf("no listener on %s: %+v", address, w.servers.Status())
	}
	a, err := request(method, "http://"+real+path)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

func request(method, url string) (answer, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	response, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

// check makes the check of one service; addresses are its listen addresses.
func check(service string, created int64, endpoints uint32, addresses ...string) Check {
	h := &messages.HealthCheck{LocalEndpoints: endpoints, ListenAddresses: addresses}
	if addr, err := parseAddress(addresses[0]); err == nil {
		h.Port = uint32(addr.Port())
	}
	return Check{Service: service, UID: "uid-" + service, Created: created, Health: h}
}
