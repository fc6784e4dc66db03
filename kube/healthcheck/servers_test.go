package healthcheck

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	here  = "192.0.2.1:30000"
	there = "192.0.2.1:30001"
)

func TestEveryRequestGetsTheSameAnswer(t *testing.T) {
	w := start(t, Config{})
	w.set(check("shop/web", 1, 2, here))
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions, http.MethodDelete} {
		for _, path := range []string{"/", "/healthz", "/any/../path//at%20all?x=y"} {
			got := w.ask(method, here, path)
			if want := "{\n\t\"service\": {\n\t\t\"namespace\": \"shop\",\n\t\t\"name\": \"web\"\n\t},\n\t\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": true\n}"; got.status != 200 || got.body != want {
				t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
			}
			for name, want := range map[string]string{
				"Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "X-Load-Balancing-Endpoint-Weight": "2",
			} {
				if got.header.Get(name) != want {
					t.Errorf("%s %s: %s is %q, want %q", method, path, name, got.header.Get(name), want)
				}
			}
		}
	}
	if got := w.ask(http.MethodHead, here, "/"); got.status != 200 || got.body != "" || got.header.Get("X-Load-Balancing-Endpoint-Weight") != "2" {
		t.Errorf("HEAD: %+v", got)
	}
}

func TestTheStatusFollowsEndpointsAndHealth(t *testing.T) {
	var healthy atomic.Bool
	w := start(t, Config{Healthy: healthy.Load})
	for _, step := range []struct {
		endpoints uint32
		healthy   bool
		status    int
		weight    string
	}{
		{1, true, 200, "1"},
		{0, true, 503, "0"},
		{3, false, 503, "3"},
		{3, true, 200, "3"},
	} {
		healthy.Store(step.healthy)
		w.set(check("a/b", 1, step.endpoints, here))
		got := w.ask(http.MethodGet, here, "/")
		if weight := got.header.Get("X-Load-Balancing-Endpoint-Weight"); got.status != step.status || weight != step.weight {
			t.Errorf("%+v: %d, weight %s", step, got.status, weight)
		}
	}
	if diff := cmp.Diff(map[string]int{here: 1}, w.host.listening()); diff != "" {
		t.Errorf("the listener was not left alone (-want +got):\n%s", diff)
	}
}

func TestTheSameListTwiceChangesNothing(t *testing.T) {
	w := start(t, Config{})
	a, b := check("a/b", 1, 1, here, "192.0.2.2:30000"), check("a/c", 1, 1, "[2001:db8::1]:30000")
	w.set(a, b)
	before := w.servers.Status()
	w.set(b, a)
	after := w.servers.Status()
	if diff := cmp.Diff(before.Ports, after.Ports, cmp.Comparer(func(a, b PortStatus) bool { return a == b })); diff != "" {
		t.Errorf("ports (-before +after):\n%s", diff)
	}
	want := map[string]int{here: 1, "192.0.2.2:30000": 1, "[2001:db8::1]:30000": 1}
	if diff := cmp.Diff(want, w.host.listening()); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	if got := w.host.networks["[2001:db8::1]:30000"]; got != "tcp6" {
		t.Errorf("IPv6 opened as %s", got)
	}
}

func TestAPortChangeLeavesTheOthersAlone(t *testing.T) {
	w := start(t, Config{})
	other := check("a/other", 1, 1, "192.0.2.1:31000")
	w.set(check("a/b", 1, 1, here), other)
	old := w.host.at(here)
	w.set(check("a/b", 1, 1, there), other)
	if _, err := request(http.MethodGet, "http://"+old); err == nil {
		t.Error("the old port still answers")
	}
	if got := w.ask(http.MethodGet, there, "/"); got.status != 200 {
		t.Errorf("new port: %d", got.status)
	}
	if diff := cmp.Diff(map[string]int{there: 1, "192.0.2.1:31000": 1}, w.host.listening()); diff != "" {
		t.Errorf("listening (-want +got):\n%s", diff)
	}
}

func TestTwoServicesExchangeTheirPorts(t *testing.T) {
	w := start(t, Config{})
	w.set(check("a/b", 1, 1, here), check("a/c", 1, 2, there))
	w.set(check("a/b", 1, 1, there), check("a/c", 1, 2, here))
	if b, c := w.ask(http.MethodGet, there, "/"), w.ask(http.MethodGet, here, "/"); b.header.Get("X-Load-Balancing-Endpoint-Weight") != "1" ||
		c.header.Get("X-Load-Balancing-Endpoint-Weight") != "2" {
		t.Errorf("a/b: %s, a/c: %s", b.body, c.body)
	}
	if lines := w.told(); len(lines) > 0 {
		t.Errorf("problems: %v", lines)
	}
}

func TestTheLoserOfAContestTakesOverWithoutAGap(t *testing.T) {
	w := start(t, Config{})
	older, younger := check("z/older", 1, 1, here), check("a/younger", 2, 2, here)
	w.set(younger)
	w.set(younger, older)
	if got := w.ask(http.MethodGet, here, "/"); got.header.Get("X-Load-Balancing-Endpoint-Weight") != "1" {
		t.Errorf("contested: %s", got.body)
	}
	w.set(younger)
	if got := w.ask(http.MethodGet, here, "/"); got.header.Get("X-Load-Balancing-Endpoint-Weight") != "2" {
		t.Errorf("free again: %s", got.body)
	}
	if diff := cmp.Diff(map[string]int{here: 1}, w.host.listening()); diff != "" {
		t.Errorf("the listener was closed in between (-want +got):\n%s", diff)
	}
	w.set()
	w.until("the port is closed", func(s Status) bool { return len(s.Ports) == 0 })
	want := []string{
		"a/younger 30000 192.0.2.1:30000: the address belongs to another service, z/older",
		"a/younger 30000 192.0.2.1:30000: over, withdrawn false",
	}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestATakenPortIsTriedAgainByItself(t *testing.T) {
	w := start(t, Config{})
	w.host.take(here, syscall.EADDRINUSE)
	w.set(check("a/b", 1, 1, here, "192.0.2.2:30000"), check("a/c", 1, 1, there))
	w.until("the problem is known", func(s Status) bool { return len(s.Problems) == 1 })
	if p := w.servers.Status().Problems[0]; !errors.Is(p.Err, syscall.EADDRINUSE) || p.UID != "uid-a/b" || p.Port != 30000 {
		t.Errorf("problem %+v", p)
	}
	for _, other := range []string{"192.0.2.2:30000", there} {
		if got := w.ask(http.MethodGet, other, "/"); got.status != 200 {
			t.Errorf("%s suffers: %d", other, got.status)
		}
	}
	w.host.take(here, syscall.EADDRNOTAVAIL)
	w.until("the new reason is known", func(s Status) bool { return errors.Is(s.Problems[0].Err, syscall.EADDRNOTAVAIL) })
	w.host.take(here, nil)
	w.until("it listens", func(s Status) bool { return len(s.Problems) == 0 })
	if got := w.ask(http.MethodGet, here, "/"); got.status != 200 {
		t.Errorf("freed port: %d", got.status)
	}
	want := []string{
		"a/b 30000 192.0.2.1:30000: listen tcp4: address already in use",
		"a/b 30000 192.0.2.1:30000: listen tcp4: cannot assign requested address",
		"a/b 30000 192.0.2.1:30000: over, withdrawn false",
	}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestARealPortTakenThenFreed(t *testing.T) {
	stranger, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, Config{Listen: net.Listen})
	w.set(check("a/b", 1, 1, stranger.Addr().String()))
	w.until("the problem is known", func(s Status) bool { return len(s.Problems) == 1 })
	if err := w.servers.Status().Problems[0].Err; !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("problem: %v", err)
	}
	if err := stranger.Close(); err != nil {
		t.Fatal(err)
	}
	w.until("it listens", func(s Status) bool { return s.Ports[0].Listening })
	if got, err := request(http.MethodGet, "http://"+stranger.Addr().String()); err != nil || got.status != 200 {
		t.Errorf("freed port: %+v, %v", got, err)
	}
}

func TestAProblemEndsWithTheWish(t *testing.T) {
	w := start(t, Config{})
	w.host.take(here, syscall.EADDRINUSE)
	w.set(check("a/b", 1, 1, here))
	w.until("the problem is known", func(s Status) bool { return len(s.Problems) == 1 })
	w.set()
	w.until("nothing is wanted", func(s Status) bool { return len(s.Ports) == 0 && len(s.Problems) == 0 })
	if lines := w.told(); len(lines) != 2 || lines[1] != "a/b 30000 192.0.2.1:30000: over, withdrawn true" {
		t.Errorf("problems %q", lines)
	}
}

func TestABrokenListenerGetsASuccessor(t *testing.T) {
	w := start(t, Config{})
	var mu sync.Mutex
	var listeners []net.Listener
	broken := start(t, Config{Listen: func(network, address string) (net.Listener, error) {
		l, err := w.host.listen(network, address)
		mu.Lock()
		defer mu.Unlock()
		listeners = append(listeners, l)
		return l, err
	}})
	broken.set(check("a/b", 1, 1, here))
	mu.Lock()
	_ = listeners[0].Close() // without the servers
	mu.Unlock()
	broken.until("there is a listener again", func(s Status) bool {
		return w.host.at(here) != "" && s.Ports[0].Listening && len(s.Problems) == 0
	})
	if got := w.ask(http.MethodGet, here, "/"); got.status != 200 {
		t.Errorf("successor: %d", got.status)
	}
	lines := broken.told()
	if len(lines) != 2 || lines[1] != "a/b 30000 192.0.2.1:30000: over, withdrawn false" {
		t.Errorf("problems %q", lines)
	}
}

func TestARequestUnderWayLearnsThatTheServiceIsGone(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := start(t, Config{CloseTimeout: 10 * time.Second, Healthy: func() bool {
		once.Do(func() { close(entered) })
		<-release
		return true
	}})
	w.set(check("a/b", 1, 1, here))
	result := make(chan answer, 1)
	address := w.host.at(here)
	go func() {
		a, err := request(http.MethodGet, "http://"+address)
		if err != nil {
			t.Error(err)
		}
		result <- a
	}()
	<-entered
	w.set()
	if got := w.host.at(here); got != "" {
		t.Errorf("still listening at %s", got)
	}
	close(release)
	if got := <-result; got.status != 503 || got.body != "{\n\t\"service\": {\n\t\t\"namespace\": \"a\",\n\t\t\"name\": \"b\"\n\t},\n\t\"localEndpoints\": 0,\n\t\"serviceProxyHealthy\": true\n}" {
		t.Errorf("a closed check answers %d %s", got.status, got.body)
	}
}

// TestAllAddressesBecomeOne needs the real operating system, in which a port on all addresses
// conflicts with the same port on one address.
func TestAllAddressesBecomeOne(t *testing.T) {
	free, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	all, one := fmt.Sprintf("0.0.0.0:%d", port), fmt.Sprintf("127.0.0.1:%d", port)
	w := start(t, Config{Listen: net.Listen, RetryMin: time.Minute, RetryMax: time.Minute})
	for range 10 {
		for _, address := range []string{all, one} {
			w.set(check("a/b", 1, 1, address))
			if lines := w.told(); len(lines) > 0 {
				t.Fatalf("%s: %q", address, lines)
			}
			if got, err := request(http.MethodGet, "http://"+one); err != nil || got.status != 200 {
				t.Fatalf("%s: %d, %v", address, got.status, err)
			}
		}
	}
}

func TestClosingDoesNotWaitForEver(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := start(t, Config{CloseTimeout: 50 * time.Millisecond, Healthy: func() bool {
		once.Do(func() { close(entered) })
		<-release
		return true
	}})
	defer close(release)
	w.set(check("a/b", 1, 1, here))
	result := make(chan error, 1)
	go func() {
		_, err := request(http.MethodGet, "http://"+w.host.at(here))
		result <- err
	}()
	<-entered
	w.set(check("a/b", 1, 1, there)) // not delayed by the request under way
	if err := <-result; err == nil {
		t.Error("the connection was not cut")
	}
}

func TestAStormOfSets(t *testing.T) {
	w := start(t, Config{})
	const callers, calls, services = 4, 200, 20
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for n := range calls {
				var want []Check
				for i := range services {
					if (n+i+c)%3 > 0 {
						want = append(want, check(fmt.Sprintf("a/s%d", i), 1, uint32(n), fmt.Sprintf("192.0.2.1:%d", 30000+(i+n)%services)))
					}
				}
				w.servers.Set(want)
			}
		})
	}
	group.Wait()
	w.sets += callers * calls
	w.set(check("a/last", 1, 7, here))
	w.until("only the last one is left", func(s Status) bool { return len(s.Ports) == 1 && len(s.Problems) == 0 })
	if got := w.ask(http.MethodGet, here, "/"); got.header.Get("X-Load-Balancing-Endpoint-Weight") != "7" {
		t.Errorf("last: %s", got.body)
	}
	if open := w.host.listening(); len(open) != 1 {
		t.Errorf("open: %v", open)
	}
}

func TestManyServices(t *testing.T) {
	w := start(t, Config{})
	const n = 300
	var want []Check
	for i := range n {
		want = append(want, check(fmt.Sprintf("a/s%d", i), 1, uint32(i), fmt.Sprintf("192.0.2.1:%d", 30000+i)))
	}
	w.set(want...)
	for i := range n {
		got := w.ask(http.MethodGet, fmt.Sprintf("192.0.2.1:%d", 30000+i), "/")
		if got.header.Get("X-Load-Balancing-Endpoint-Weight") != fmt.Sprint(i) || (got.status == 200) != (i > 0) {
			t.Errorf("service %d: %d %s", i, got.status, got.body)
		}
	}
	w.set(want[:n/2]...)
	w.until("half of them are left", func(s Status) bool { return len(s.Ports) == n/2 })
	slices.Reverse(want)
	w.set(want...)
	if open := w.host.listening(); len(open) != n || open["192.0.2.1:30000"] != 1 {
		t.Errorf("%d open, the first one %d times", len(open), open["192.0.2.1:30000"])
	}
}
