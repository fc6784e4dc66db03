package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

var _ Source = (*DNS)(nil)

// zone is a server in memory. Its records are "NAME TYPE TTL VALUE". A name without any record does
// not exist.
type zone struct {
	mu      sync.Mutex
	records []string
	broken  string // how it answers: "" = well
	asked   []string
}

// set replaces the records.
func (z *zone) set(broken string, records ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.broken, z.records = broken, records
}

// queries returns the queries so far.
func (z *zone) queries() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.asked)
}

// dial connects to the server.
func (z *zone) dial(_ context.Context, network, _ string) (net.Conn, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.broken == "refuses TCP" && network == "tcp" {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	go z.serve(there, network)
	return here, nil
}

func (z *zone) serve(conn net.Conn, network string) {
	defer conn.Close() //nolint:errcheck // of a pipe
	query, err := receive(conn, network)
	if err != nil {
		return
	}
	for _, answer := range z.answers(query, network) {
		if network == "tcp" {
			answer = append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
	_, _ = conn.Read(make([]byte, 1)) // until the client closes
}

// answers returns what the server sends.
func (z *zone) answers(query []byte, network string) [][]byte {
	z.mu.Lock()
	defer z.mu.Unlock()
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 || !m.RecursionDesired || len(m.Additionals) != 1 {
		return nil
	}
	q := m.Questions[0]
	z.asked = append(z.asked, fmt.Sprint(nameText(q.Name), " ", q.Type.String()[4:], " ", network))
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	switch z.broken {
	case "silent":
		return nil
	case "fails":
		m.RCode = dnsmessage.RCodeServerFailure
	case "knows nothing":
		m.RecursionAvailable = false
	case "truncates", "refuses TCP":
		m.Truncated = network == "udp"
	}
	if m.RCode == dnsmessage.RCodeSuccess && !m.Truncated && m.RecursionAvailable {
		z.fill(&m, q)
	}
	answer, err := m.Pack()
	if err != nil {
		panic(err)
	}
	if z.broken == "is forged" { // the right answer comes third
		m.ID++
		other, _ := m.Pack()
		m.ID--
		m.Questions[0].Name = dnsmessage.MustNewName("evil.")
		another, _ := m.Pack()
		return [][]byte{other, another, {1, 2, 3}, answer}
	}
	return [][]byte{answer}
}

// fill adds the records of a name, and the records of the target of an alias.
func (z *zone) fill(m *dnsmessage.Message, q dnsmessage.Question) {
	name, exists := nameText(q.Name), false
	for range 20 {
		alias := ""
		for _, line := range z.records {
			words := strings.Fields(line)
			if words[0] != name {
				continue
			}
			exists = true
			r := resource(words)
			if "Type"+words[1] == q.Type.String() || words[1] == "CNAME" {
				m.Answers = append(m.Answers, r)
			}
			if words[1] == "CNAME" {
				alias = words[3]
			}
		}
		if alias == "" {
			break
		}
		name = alias
	}
	if !exists {
		m.RCode = dnsmessage.RCodeNameError
	}
	if len(m.Answers) == 0 {
		m.Authorities = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("test."), Type: dnsmessage.TypeSOA, Class: dnsmessage.ClassINET, TTL: 30},
			Body:   &dnsmessage.SOAResource{NS: dnsmessage.MustNewName("ns.test."), MBox: dnsmessage.MustNewName("m.test."), MinTTL: 20},
		}}
	}
}

func resource(words []string) dnsmessage.Resource {
	var ttl uint32
	if _, err := fmt.Sscan(words[2], &ttl); err != nil {
		panic(err)
	}
	r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(words[0] + "."), Class: dnsmessage.ClassINET, TTL: ttl}}
	switch words[1] {
	case "A":
		r.Body = &dnsmessage.AResource{A: netip.MustParseAddr(words[3]).As4()}
	case "AAAA":
		r.Body = &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(words[3]).As16()}
	case "CNAME":
		r.Body = &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(words[3] + ".")}
	case "SRV":
		srv := &dnsmessage.SRVResource{Target: dnsmessage.MustNewName(strings.TrimSuffix(words[5], ".") + ".")}
		if _, err := fmt.Sscan(words[3]+" "+words[4], &srv.Priority, &srv.Port); err != nil {
			panic(err)
		}
		r.Body = srv
	default:
		panic(words[1])
	}
	r.Header.Type = map[string]dnsmessage.Type{"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA, "CNAME": dnsmessage.TypeCNAME, "SRV": dnsmessage.TypeSRV}[words[1]]
	return r
}

// follow runs a source in virtual time while test runs. last waits until all goroutines wait, and
// returns the last snapshot as text.
func follow(t *testing.T, what string, z *zone, test func(t *testing.T, last func() string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o, err := ParseDNS(what + "@192.0.2.53")
		if err != nil {
			t.Fatal(err)
		}
		s := NewDNS(o, slog.New(slog.DiscardHandler))
		s.dial = z.dial
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var snapshot Snapshot
		done := make(chan error)
		go func() {
			done <- s.Run(ctx, func(s Snapshot) {
				mu.Lock()
				defer mu.Unlock()
				snapshot = s
			})
		}()
		test(t, func() string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return describe(snapshot)
		})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// describe describes a snapshot of one service.
func describe(s Snapshot) string {
	if len(s.Services) != 1 {
		return fmt.Sprintf("%d services", len(s.Services))
	}
	service := s.Services[0]
	words := []string{service.Name}
	if service.Unknown {
		words = append(words, "unknown")
	}
	for _, i := range service.Instances {
		word := i.Address
		for name, port := range i.Ports {
			word += fmt.Sprintf(" %s=%d", name, port)
		}
		if i.State != Ready {
			word += " not ready"
		}
		words = append(words, word)
	}
	if !s.Complete {
		words = append(words, "incomplete")
	}
	for _, p := range s.Problems {
		words = append(words, p.Message)
	}
	return strings.Join(words, "; ")
}

// TestA24Answers: each answer of the server with the snapshot that follows from it.
func TestA24Answers(t *testing.T) {
	var crowd, seen []string
	for i := range 120 {
		crowd = append(crowd, fmt.Sprintf("_http._tcp.web.test SRV 60 1 %d h%03d.test", 8000+i, i), fmt.Sprintf("h%03d.test A 60 198.51.100.%d", i, i+1))
		if i < mostTargets {
			seen = append(seen, fmt.Sprintf("198.51.100.%d http=%d", i+1, 8000+i))
		}
	}
	loop := []string{"web.test CNAME 60 a.test", "a.test CNAME 60 web.test"}
	for name, c := range map[string]struct {
		what, broken string
		records      []string
		want         string
	}{
		"addresses":            {"web.test:80", "", []string{"web.test A 60 192.0.2.2", "web.test A 60 192.0.2.1", "web.test AAAA 60 2001:db8::1"}, "web; 192.0.2.1; 192.0.2.2; 2001:db8::1"},
		"an alias":             {"web.test:80", "", []string{"web.test CNAME 60 a.test", "a.test CNAME 60 b.test", "b.test A 60 192.0.2.1"}, "web; 192.0.2.1"},
		"aliases in a circle":  {"web.test:80", "", loop, "web; unknown; incomplete; look up web.test.: more than 8 aliases"},
		"no such name":         {"web.test:80", "", nil, "web"},
		"no such records":      {"web.test:80", "", []string{"web.test SRV 60 1 80 a.test"}, "web"},
		"the server fails":     {"web.test:80", "fails", nil, "web; unknown; incomplete; look up A of web.test. at 192.0.2.53:53: the server answers ServerFailure"},
		"no answer":            {"web.test:80", "silent", nil, "web; unknown; incomplete; look up A of web.test. at 192.0.2.53:53: receive over udp: no answer within 2s"},
		"another server":       {"web.test:80", "knows nothing", nil, "web; unknown; incomplete; look up A of web.test. at 192.0.2.53:53: the server does not know the name and asks no other server"},
		"over TCP":             {"web.test:80", "truncates", []string{"web.test A 60 192.0.2.1"}, "web; 192.0.2.1"},
		"truncated, no TCP":    {"web.test:80", "refuses TCP", []string{"web.test A 60 192.0.2.1"}, "web; unknown; incomplete; look up A of web.test. at 192.0.2.53:53: connection refused"},
		"forged answers":       {"web.test:80", "is forged", []string{"web.test A 60 192.0.2.1"}, "web; 192.0.2.1"},
		"SRV":                  {"_http._tcp.web.test", "", []string{"_http._tcp.web.test SRV 60 1 8080 a.test", "_http._tcp.web.test SRV 60 1 8081 a.test", "a.test A 60 192.0.2.1"}, "web; 192.0.2.1 http=8080; 192.0.2.1 http=8081"},
		"SRV with priorities":  {"_http._tcp.web.test", "", []string{"_http._tcp.web.test SRV 60 2 80 b.test", "_http._tcp.web.test SRV 60 1 80 a.test", "a.test A 60 192.0.2.1", "b.test A 60 192.0.2.2"}, "web; 192.0.2.1 http=80; 192.0.2.2 http=80 not ready"},
		"first group is empty": {"_http._tcp.web.test", "", []string{"_http._tcp.web.test SRV 60 2 80 b.test", "_http._tcp.web.test SRV 60 1 80 a.test", "b.test A 60 192.0.2.2"}, "web; 192.0.2.2 http=80"},
		"SRV of nothing":       {"_http._tcp.web.test", "", []string{"_http._tcp.web.test SRV 60 0 0 ."}, "web"},
		"too many":             {"_http._tcp.web.test", "", crowd, "web; " + strings.Join(seen, "; ") + "; 120 targets, at most 100 are used"},
	} {
		t.Run(name, func(t *testing.T) {
			z := &zone{broken: c.broken, records: c.records}
			follow(t, c.what, z, func(t *testing.T, last func() string) {
				time.Sleep(30 * time.Second)
				if got := last(); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		})
	}
}

// TestA24Refresh: answers are refreshed when their TTL ends, within limits. After a failure the
// known state stays, and the look-up is tried again with growing delays.
func TestA24Refresh(t *testing.T) {
	for ttl, want := range map[int]int{1: 60, 60: 5, 3600: 1} { // times in five minutes
		z := &zone{records: []string{fmt.Sprintf("web.test A %d 192.0.2.1", ttl), fmt.Sprintf("web.test AAAA %d 2001:db8::1", ttl)}}
		follow(t, "web.test:80", z, func(t *testing.T, last func() string) {
			time.Sleep(5*time.Minute - time.Second)
			last()
			n := 0
			for _, asked := range z.queries() {
				if asked == "web.test A udp" {
					n++
				}
			}
			if n != want {
				t.Errorf("TTL %d: asked %d times in five minutes, want %d", ttl, n, want)
			}
		})
	}
	z := &zone{records: []string{"web.test A 5 192.0.2.1"}}
	follow(t, "web.test:80", z, func(t *testing.T, last func() string) {
		for _, step := range []struct {
			broken  string
			records []string
			lasts   time.Duration
			want    string
		}{
			{"", []string{"web.test A 5 192.0.2.1"}, time.Second, "web; 192.0.2.1"},
			// there was no AAAA record, which holds for 20 s
			{"", []string{"web.test A 5 192.0.2.2"}, 21 * time.Second, "web; 192.0.2.2"},
			{"fails", nil, 10 * time.Minute, "web; unknown; incomplete; look up A of web.test. at 192.0.2.53:53: the server answers ServerFailure"},
			{"", []string{"web.test A 5 192.0.2.3"}, time.Minute, "web; 192.0.2.3"},
			{"", nil, 25 * time.Second, "web"},
		} {
			z.set(step.broken, step.records...)
			asked := len(z.queries())
			time.Sleep(step.lasts)
			if got := last(); got != step.want {
				t.Errorf("got  %s\nwant %s", got, step.want)
			}
			if n := len(z.queries()) - asked; step.broken == "fails" && n > 2*20 {
				t.Errorf("%d queries in ten minutes of failure", n)
			}
		}
	})
}

// TestSecondServer: if the first server fails, the next one is asked.
func TestSecondServer(t *testing.T) {
	good := &zone{records: []string{"web.test A 60 192.0.2.1"}}
	bad := &zone{broken: "fails"}
	synctest.Test(t, func(t *testing.T) {
		o, err := ParseDNS("web.test:80@192.0.2.52,192.0.2.53:5353")
		if err != nil {
			t.Fatal(err)
		}
		s := NewDNS(o, slog.New(slog.DiscardHandler))
		s.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "192.0.2.53:5353" {
				return good.dial(ctx, network, address)
			}
			return bad.dial(ctx, network, address)
		}
		service, _, ttl, err := s.resolve(t.Context())
		if err != nil || len(service.Instances) != 1 || ttl != 20*time.Second {
			t.Errorf("%+v, %s, %v", service, ttl, err)
		}
		if !slices.Equal(bad.queries(), good.queries()) {
			t.Errorf("asked %v and %v", bad.queries(), good.queries())
		}
	})
}

// TestLoopback: real sockets, both networks.
func TestLoopback(t *testing.T) {
	z := &zone{broken: "truncates", records: []string{"web.test A 60 192.0.2.1"}}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		t.Skipf("the UDP port of %s is in use", tcp.Addr())
	}
	defer udp.Close()
	var served sync.WaitGroup
	defer served.Wait()
	served.Go(func() {
		query := make([]byte, 1500)
		for {
			n, from, err := udp.ReadFrom(query)
			if err != nil {
				return
			}
			for _, answer := range z.answers(query[:n], "udp") {
				_, _ = udp.WriteTo(answer, from)
			}
		}
	})
	served.Go(func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			served.Go(func() { z.serve(conn, "tcp") })
		}
	})
	o, err := ParseDNS("web.test:80@" + tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	service, _, _, err := NewDNS(o, slog.New(slog.DiscardHandler)).resolve(t.Context())
	if err != nil || len(service.Instances) != 1 || service.Instances[0].Address != "192.0.2.1" {
		t.Errorf("%+v, %v", service, err)
	}
	_ = udp.Close()
	_ = tcp.Close()
}

// FuzzA29Answer: no answer causes a panic, and an answer to another question is never used.
func FuzzA29Answer(f *testing.F) {
	q := dnsmessage.Question{Name: dnsmessage.MustNewName("web.test."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}
	id, query, err := newQuery(q)
	if err != nil {
		f.Fatal(err)
	}
	for _, broken := range []string{"", "fails", "truncates", "is forged"} {
		z := &zone{broken: broken, records: []string{"web.test CNAME 5 a.test", "a.test A 60 192.0.2.1"}}
		for _, answer := range z.answers(query, "udp") {
			f.Add(answer)
		}
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		m, mine, err := decode(answer, id, q)
		if err == nil && (!mine || len(answer) < 12) {
			t.Errorf("taken: %v", answer)
		}
		l := &lookup{}
		if found, alias := l.owned(m.answers, "web.test", q.Type); len(found) > 0 && alias != "" && found[0].Header.Type != q.Type {
			t.Errorf("records %v", found)
		}
	})
}
