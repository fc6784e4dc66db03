package service_test

import (
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

func TestSourceRanges(t *testing.T) {
	const lb = "1.2.3.4:80/TCP any reject"
	for _, test := range []struct {
		name   string
		ranges []string
		want   string
	}{
		{"none: every client", nil, ""},
		{"one", []string{"203.0.113.0/25"}, " allow=203.0.113.0/25"},
		{"host bits are cleared, duplicates and order do not matter", []string{"203.0.113.128/25", "203.0.113.1/25", "203.0.113.0/25"}, " allow=203.0.113.0/25,203.0.113.128/25"},
		{"everything anywhere in the list: every client", []string{"203.0.113.0/25", "0.0.0.0/0"}, ""},
		{"everything of the other family means nothing here", []string{"203.0.113.0/25", "::/0"}, " allow=203.0.113.0/25"},
		{"only ranges of the other family: every client", []string{"2001:db8::/32"}, ""},
		{"a range with the primary node address allows the load balancer's addresses", []string{"192.168.0.0/24"}, " allow=1.2.3.4/32,192.168.0.0/24"},
		{"a range with another node address does not", []string{"192.168.1.0/24"}, " allow=192.168.1.0/24"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := webService(loadBalancer("1.2.3.4"), ranges(test.ranges...), nodePort(30080), externalIPs("5.6.7.8"))
			view := service.Resolve(input(s), nodeN1("192.168.0.2", "192.168.1.2"), service.Config{})
			wantLines(t, view, lb+test.want, "10.96.0.10:80/TCP any reject", "192.168.0.2:30080/TCP any reject", "5.6.7.8:80/TCP any reject")
		})
	}
	t.Run("without a range that can be read: no client", func(t *testing.T) {
		for _, list := range [][]string{{""}, {"everywhere"}, {"", "2001:db8::/32"}} {
			s := webService(loadBalancer("1.2.3.4"), ranges(list...), nodePort(30080), externalIPs("5.6.7.8"), externalLocal)
			view := service.Resolve(input(s, sliceOf("a", "10.0.0.1@n1")), nodeN1(), service.Config{})
			wantLines(t, view, "1.2.3.4:80/TCP any drop",
				"10.96.0.10:80/TCP any forward 10.0.0.1:8080",
				"192.168.0.2:30080/TCP local forward 10.0.0.1:8080 masq=node", "192.168.0.2:30080/TCP remote forward 10.0.0.1:8080",
				"5.6.7.8:80/TCP local forward 10.0.0.1:8080 masq=node", "5.6.7.8:80/TCP remote forward 10.0.0.1:8080")
		}
	})
	t.Run("one that cannot be read beside one of everything", func(t *testing.T) {
		view := service.Resolve(input(webService(loadBalancer("1.2.3.4"), ranges("", "0.0.0.0/0"))), nodeN1(), service.Config{})
		wantLines(t, view, lb, "10.96.0.10:80/TCP any reject")
	})
	t.Run("no client: also where the address is an external IP or the cluster IP", func(t *testing.T) {
		s := webService(loadBalancer("1.2.3.4", "10.96.0.10"), ranges(""), externalIPs("1.2.3.4"), externalLocal, func(s *messages.Service) {
			s.AffinitySeconds = 60
		})
		view := service.Resolve(input(s, sliceOf("a", "10.0.0.1@n1")), nodeN1(), service.Config{})
		wantLines(t, view, "1.2.3.4:80/TCP any drop", "10.96.0.10:80/TCP any drop")
	})
	t.Run("addresses with ipMode Proxy are not allowed as sources", func(t *testing.T) {
		s := webService(loadBalancer("1.2.3.4", "5.6.7.8"), ranges("192.168.0.0/24"))
		s.LoadBalancer[1].Proxy = true
		view := service.Resolve(input(s), nodeN1(), service.Config{})
		wantLines(t, view, lb+" allow=1.2.3.4/32,192.168.0.0/24", "10.96.0.10:80/TCP any reject")
	})
	t.Run("one that cannot be read is reported", func(t *testing.T) {
		s := webService(loadBalancer("1.2.3.4"), ranges("203.0.113.0/25", "everywhere"))
		view := service.Resolve(input(s), nodeN1(), service.Config{})
		wantLines(t, view, lb+" allow=203.0.113.0/25", "10.96.0.10:80/TCP any reject")
		if len(view.GetErrors()) != 1 || view.GetErrors()[0].GetField() != "spec.loadBalancerSourceRanges" {
			t.Errorf("errors: %v", view.GetErrors())
		}
	})
}
