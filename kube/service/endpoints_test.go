package service_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

func TestEndpointsOfSlices(t *testing.T) {
	with := func(slice *messages.EndpointSlice, change func(*messages.EndpointSlice)) *messages.EndpointSlice {
		change(slice)
		return slice
	}
	for _, test := range []struct {
		name   string
		slices []*messages.EndpointSlice
		want   string
	}{
		{
			"slices are united",
			[]*messages.EndpointSlice{sliceOf("a", "10.0.0.1"), sliceOf("b", "10.0.0.2")},
			"forward 10.0.0.1:8080,10.0.0.2:8080",
		},
		{
			"the same ip:port counts once",
			[]*messages.EndpointSlice{sliceOf("a", "10.0.0.1", "10.0.0.1"), sliceOf("b", "10.0.0.1")},
			"forward 10.0.0.1:8080",
		},
		{
			"the same address on two ports counts twice",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) {
				s.Ports = append(s.Ports, &messages.EndpointPort{Name: "http", Protocol: tcp, Port: 8081})
			})},
			"forward 10.0.0.1:8080,10.0.0.1:8081",
		},
		{
			"a port of another name is another port",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) { s.Ports[0].Name = "metrics" })},
			"reject",
		},
		{
			"a port of another protocol is another port",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) { s.Ports[0].Protocol = udp })},
			"reject",
		},
		{
			"a port without a number is ignored",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) { s.Ports[0].Port = 0 })},
			"reject",
		},
		{
			"a port beyond 65535 is ignored",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) { s.Ports[0].Port = 65536 })},
			"reject",
		},
		{
			"slices of names give nothing",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) { s.Family = 0 })},
			"reject",
		},
		{
			"slices of the other family give nothing",
			[]*messages.EndpointSlice{sliceOf("a", "fd00:10::1")},
			"reject",
		},
		{
			"slices with the headless label give nothing",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) { s.Headless = true })},
			"reject",
		},
		{
			"slices of another service give nothing",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) { s.Service = "api" })},
			"reject",
		},
		{
			"slices of another namespace give nothing",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) { s.Namespace = "test" })},
			"reject",
		},
		{
			"an endpoint without an address is ignored",
			[]*messages.EndpointSlice{with(sliceOf("a", "10.0.0.1"), func(s *messages.EndpointSlice) { s.Endpoints[0].Address = "" })},
			"reject",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := service.Resolve(input(webService(), test.slices...), nodeN1(), service.Config{})
			wantLines(t, view, "10.96.0.10:80/TCP any "+test.want)
			if len(view.GetErrors()) > 0 {
				t.Errorf("errors: %v", view.GetErrors())
			}
		})
	}
}

// TestDuplicateEndpoints: two slices disagree about 10.0.0.1. The winner is on n1 in all tests, the
// loser on n0, which would win by its name if nothing else decided, and the answer must not depend
// on the order.
func TestDuplicateEndpoints(t *testing.T) {
	for _, test := range []struct {
		name          string
		winner, loser string
		generations   [2]int64
		names         [2]string
	}{
		{"one that does not terminate beats one that does", "notready", "ready terminating", [2]int64{1, 2}, [2]string{"b", "a"}},
		{"then a ready one beats one that is not", "ready", "notready", [2]int64{1, 2}, [2]string{"b", "a"}},
		{"then the higher generation wins", "ready", "ready", [2]int64{2, 1}, [2]string{"b", "a"}},
		{"then the smaller slice name wins", "ready", "ready", [2]int64{1, 1}, [2]string{"a", "b"}},
		{"two terminating ones: ready wins", "ready terminating", "notready serving terminating", [2]int64{1, 2}, [2]string{"b", "a"}},
		{"two in one slice: the one that serves wins", "ready", "ready notserving", [2]int64{1, 1}, [2]string{"a", "a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			winner, loser := sliceOf(test.names[0], "10.0.0.1@n1 "+test.winner), sliceOf(test.names[1], "10.0.0.1@n0 "+test.loser)
			winner.Generation, loser.Generation = test.generations[0], test.generations[1]
			// With a ready endpoint on another node every property of the winner
			// changes the rows.
			other := sliceOf("c", "10.0.0.9@n3")
			resolve := func(slices ...*messages.EndpointSlice) []string {
				internal := lines(service.Resolve(input(webService(internalLocal), slices...), nodeN1(), service.Config{}))
				return append(internal, lines(service.Resolve(input(webService(), slices...), nodeN1(), service.Config{}))...)
			}
			want := resolve(winner, other)
			if slices.Equal(want, resolve(loser, other)) {
				t.Fatal("the test cannot tell winner and loser apart")
			}
			for _, both := range [][]*messages.EndpointSlice{{winner, loser, other}, {loser, winner, other}, {other, loser, winner}} {
				if diff := cmp.Diff(want, resolve(both...)); diff != "" {
					t.Errorf("rows (-winner alone +both):\n%s", diff)
				}
			}
		})
	}
}

// TestDuplicatesInOneSlice: the result must not depend on the order of entries, even if they differ
// only in irrelevant fields.
func TestDuplicatesInOneSlice(t *testing.T) {
	for _, test := range []struct{ name, a, b string }{
		{"nodes", "10.0.0.1@n1", "10.0.0.1@n2"},
		{"zone hints", "10.0.0.1 zone=a", "10.0.0.1 zone=b"},
		{"node hints", "10.0.0.1 zone=b node=n1", "10.0.0.1 zone=b node=n2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			const other = "10.0.0.9@n3 zone=a node=n1"
			s := webService(nodePort(30080), externalLocal)
			first := service.Resolve(input(s, sliceOf("a", test.a, test.b, other)), nodeN1(), service.Config{})
			second := service.Resolve(input(s, sliceOf("a", test.b, other, test.a)), nodeN1(), service.Config{})
			wantLines(t, second, lines(first)...)
			alone := service.Resolve(input(s, sliceOf("a", test.b, other)), nodeN1(), service.Config{})
			if proto.Equal(alone, first) {
				t.Error("the test cannot tell the entries apart")
			}
		})
	}
}

func TestManyEndpointsAreOrderedByText(t *testing.T) {
	for _, family := range []messages.IPFamily{v4, v6} {
		var words []string
		for i := range 700 {
			n := i * 389 % 700
			if family == v4 {
				words = append(words, fmt.Sprintf("10.%d.%d.%d", n%3, n/256, n%256))
			} else {
				words = append(words, fmt.Sprintf("fd00:10:%x::%x", n%3, n+1))
			}
		}
		s := webService(dualStack)
		view := service.Resolve(input(s, sliceOf("a", words[:300]...), sliceOf("b", words[200:]...)), nodeN1(), service.Config{})
		if problem := invariantBroken(view); problem != "" {
			t.Error(problem)
		}
		for _, row := range view.GetFrontends() {
			if n := len(row.GetBackends()); n != 0 && n != 700 {
				t.Errorf("%d backends, want 700", n)
			}
		}
	}
}

func TestUnusableEndpointAddressesAreReportedOncePerSlice(t *testing.T) {
	in := input(webService(), sliceOf("a", "10.0.0.1", "10.0.0.300", "fd00::1", "0.0.0.0", "10.0.0.2%eth0"))
	view := service.Resolve(in, nodeN1(), service.Config{})
	wantLines(t, view, "10.96.0.10:80/TCP any forward 10.0.0.1:8080")
	if len(view.GetErrors()) != 1 {
		t.Fatalf("errors: %v", view.GetErrors())
	}
	e := view.GetErrors()[0]
	if e.GetKind() != "EndpointSlice" || e.GetObject() != "default/a" || e.GetField() != "endpoints.addresses" ||
		e.GetMessage() != `4 unusable for family IPV4, for example "0.0.0.0"` {
		t.Errorf("error: %v", e)
	}
}

func TestAddressesAreWrittenCanonically(t *testing.T) {
	s := webService(func(s *messages.Service) {
		s.ClusterIps, s.IpFamilies = []string{"FD00:96:0::10"}, []messages.IPFamily{v6}
	}, externalIPs("2001:DB8:0:0::1"))
	view := service.Resolve(input(s, sliceOf("a", "fd00:10:0:0::A", "fd00:10::a")), nodeN1(), service.Config{})
	wantLines(t, view,
		"[2001:db8::1]:80/TCP any forward [fd00:10::a]:8080 masq=pod,node,remote",
		"[fd00:96::10]:80/TCP any forward [fd00:10::a]:8080")
	view = service.Resolve(input(webService(), sliceOf("a", "10.0.0.1")), nodeN1(), service.Config{})
	mapped := webService(func(s *messages.Service) { s.ClusterIps = []string{"::ffff:10.96.0.10"} })
	wantLines(t, service.Resolve(input(mapped, sliceOf("a", "10.0.0.1")), nodeN1(), service.Config{}), lines(view)...)
}
