package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

func TestParseNodePortAddresses(t *testing.T) {
	for _, test := range []struct {
		words []string
		want  string
	}{
		{nil, "all"},
		{[]string{}, "all"},
		{[]string{"all"}, "all"},
		{[]string{"primary"}, "primary"},
		{[]string{" primary "}, "primary"},
		{[]string{"10.1.2.3/8", " 2001:db8::1/64"}, "10.0.0.0/8,2001:db8::/64"},
		{[]string{"::ffff:10.1.2.3/104"}, "10.0.0.0/8"},
		{[]string{"0.0.0.0/0"}, "0.0.0.0/0"},
		{[]string{"10.1.2.3/8", "primary"}, "primary,10.0.0.0/8"},
		{[]string{"primary", "primary"}, "primary"},
	} {
		got, err := service.ParseNodePortAddresses(test.words)
		if err != nil || got.String() != test.want {
			t.Errorf("%q: %q, %v, want %q", test.words, got, err, test.want)
		}
	}
	for _, words := range [][]string{{"primary", "10.0.0.1"}, {"primary", "all"}, {"10.0.0.0/8", "all"}, {"10.0.0.1"}, {""}, {"10.0.0.0/33"}, {"first"}} {
		if got, err := service.ParseNodePortAddresses(words); !errors.Is(err, service.ErrNodePortAddresses) {
			t.Errorf("%q: %q, %v, want an error", words, got, err)
		}
	}
}

func TestNodePortAddresses(t *testing.T) {
	node := []string{"192.168.0.2", "2001:db8::2", "192.168.1.2", "192.168.0.2", "127.0.0.1", "::1", "2001:db8:1::2", "rubbish", "fe80::1%eth0"}
	for _, test := range []struct {
		name   string
		words  []string
		node   []string
		v4, v6 []string
	}{
		{"primary is the first of each family", []string{"primary"}, node, []string{"192.168.0.2"}, []string{"2001:db8::2"}},
		{"primary is never loopback", []string{"primary"}, []string{"127.0.0.1", "192.168.0.2"}, []string{}, []string{}},
		{"primary and a CIDR", []string{"primary", "192.168.1.0/24"}, node, []string{"192.168.0.2", "192.168.1.2"}, []string{"2001:db8::2"}},
		{"primary within a CIDR, once", []string{"2001:db8::/32", "primary"}, node, []string{"192.168.0.2"}, []string{"2001:db8::2", "2001:db8:1::2"}},
		{"a CIDR beside a loopback that is the primary", []string{"primary", "192.168.0.0/16"}, []string{"127.0.0.1", "192.168.0.2"}, []string{"192.168.0.2"}, []string{}},
		{"all is every one but loopback, once", nil, node, []string{"192.168.0.2", "192.168.1.2"}, []string{"2001:db8::2", "2001:db8:1::2"}},
		{"a CIDR takes those inside", []string{"192.168.1.0/24", "2001:db8::/64"}, node, []string{"192.168.1.2"}, []string{"2001:db8::2"}},
		{"a CIDR around loopback does not help", []string{"127.0.0.0/8"}, node, []string{}, []string{"2001:db8::2", "2001:db8:1::2"}},
		{"a family without a CIDR has all", []string{"2001:db8:1::2/128"}, node, []string{"192.168.0.2", "192.168.1.2"}, []string{"2001:db8:1::2"}},
		{"a CIDR that contains none leaves none", []string{"172.16.0.0/12"}, node, []string{}, []string{"2001:db8::2", "2001:db8:1::2"}},
		{"the widest CIDR is all", []string{"0.0.0.0/0", "::/0"}, node, []string{"192.168.0.2", "192.168.1.2"}, []string{"2001:db8::2", "2001:db8:1::2"}},
		{"a node without addresses has none", nil, nil, []string{}, []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := mustNodePorts(t, test.words...)
			context := &messages.NodeContext{Node: &messages.Node{Addresses: test.node}, Addresses: test.node}
			if diff := cmp.Diff(test.v4, n.Select(context, v4)); diff != "" {
				t.Errorf("IPv4 (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.v6, n.Select(context, v6)); diff != "" {
				t.Errorf("IPv6 (-want +got):\n%s", diff)
			}
		})
	}
	uplink := &messages.NodeContext{Node: &messages.Node{Addresses: []string{"192.168.0.2"}}, Addresses: []string{"192.168.0.2", "192.168.1.2", "2001:db8::2"}}
	for words, want := range map[string]string{"primary": "[192.168.0.2] []", "primary,2001:db8::/32": "[192.168.0.2] [2001:db8::2]", "all": "[192.168.0.2 192.168.1.2] [2001:db8::2]"} {
		if n := mustNodePorts(t, strings.Split(words, ",")...); fmt.Sprint(n.Select(uplink, v4), n.Select(uplink, v6)) != want {
			t.Errorf("%s with addresses that only VPP has: %s %s, want %s", words, n.Select(uplink, v4), n.Select(uplink, v6), want)
		}
	}
	if got := (service.NodePortAddresses{}).String(); got != "primary" {
		t.Errorf("the zero value is %q", got)
	}
	if got := service.Resolve(input(webService(nodePort(30080))), nil, service.Config{}); len(got.GetFrontends()) != 1 {
		t.Errorf("a node port without a node: %v", lines(got))
	}
}
