package kube_test

import (
	"fmt"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// cluster returns n services with five endpoints each, on 100 nodes.
func cluster(n int) *normalize.Objects {
	out := &normalize.Objects{}
	for i := range n {
		name := fmt.Sprintf("svc-%05d", i)
		out.Services = append(out.Services, svc(name, fmt.Sprintf("10.96.%d.%d", i/256, i%256)))
		out.Slices = append(out.Slices, backends(name, 0))
	}
	for i := range 100 {
		name := fmt.Sprintf("node-%03d", i)
		out.Nodes = append(out.Nodes, &messages.Node{Name: name, Addresses: []string{fmt.Sprintf("192.168.0.%d", i)}})
	}
	return out
}

func backends(service string, version int) *messages.EndpointSlice {
	var addresses []string
	for i := range 5 {
		addresses = append(addresses, fmt.Sprintf("10.1.%d.%d", version%250, i+1))
	}
	return eps(service+"-1", service, addresses...)
}

// BenchmarkUpdateOfOneSlice measures an endpoint change: one slice of one of 10,000 services.
func BenchmarkUpdateOfOneSlice(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			s := kube.NewStore("node-000")
			s.Replace(cluster(n), nil)
			s.Commit()
			versions := make([]*messages.EndpointSlice, 250)
			for i := range versions {
				versions[i] = backends("svc-00042", i+1)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				s.Set(versions[i%len(versions)], nil)
				if len(s.Commit().Services) != 1 {
					b.Fatal("nothing changed")
				}
			}
		})
	}
}

// BenchmarkUnchangedUpdate measures an update that changes only metadata.
func BenchmarkUnchangedUpdate(b *testing.B) {
	s := kube.NewStore("node-000")
	s.Replace(cluster(10_000), nil)
	s.Commit()
	b.ReportAllocs()
	for i := range b.N {
		same := backends("svc-00042", 0)
		same.Generation = int64(i)
		s.Set(same, nil)
		if !empty(s.Commit()) {
			b.Fatal("something changed")
		}
	}
}

// BenchmarkRelist measures an unchanged, complete list of 10,000 services.
func BenchmarkRelist(b *testing.B) {
	s := kube.NewStore("node-000")
	objects, again := cluster(10_000), cluster(10_000)
	s.Replace(objects, nil)
	s.Commit()
	b.ReportAllocs()
	for range b.N {
		s.Replace(again, nil)
		if !empty(s.Commit()) {
			b.Fatal("something changed")
		}
	}
}

// empty says that nothing changed.
func empty(c kube.Changes) bool { return len(c.Services) == 0 && c.Node == nil }
