package catalog

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDNS(t *testing.T) {
	servers := func(texts ...string) (out []netip.AddrPort) {
		for _, text := range texts {
			out = append(out, netip.MustParseAddrPort(text))
		}
		return out
	}
	for text, want := range map[string]struct {
		options DNSOptions
		service string
	}{
		"web.example.com:8080@10.0.0.2:5353": {DNSOptions{
			Name: "web.example.com", Port: Port{Number: 8080}, Servers: servers("10.0.0.2:5353"),
		}, "web"},
		"_http._tcp.WEB.example.com.@10.0.0.2,::1": {DNSOptions{
			Name: "_http._tcp.web.example.com", SRV: true, Port: Port{Name: "http", Protocol: "TCP"},
			Servers: servers("10.0.0.2:53", "[::1]:53"),
		}, "web"},
		"_sip._udp.pbx:5060@[2001:db8::1]:54": {DNSOptions{
			Name: "_sip._udp.pbx", SRV: true, Port: Port{Name: "sip", Protocol: "UDP", Number: 5060}, Servers: servers("[2001:db8::1]:54"),
		}, "pbx"},
	} {
		got, err := ParseDNS(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want.options, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if got.service() != want.service {
			t.Errorf("%s: service %q", text, got.service())
		}
	}
}

func TestParseSaysWhichPartIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"web.example.com:80":                         "server is missing",
		"web.example.com:80@":                        "server is missing",
		"web.example.com:80@dns.example.com":         `server "dns.example.com"`,
		"web.example.com:80@10.0.0.1,":               `server ""`,
		"web.example.com:80@10.0.0.1:0":              `server "10.0.0.1:0"`,
		"web.example.com@10.0.0.1":                   "needs a port",
		"web.example.com:0@10.0.0.1":                 `port "0"`,
		"web.example.com:65536@10.0.0.1":             `port "65536"`,
		"web.example.com:@10.0.0.1":                  `port ""`,
		"web..com:80@10.0.0.1":                       `name "web..com"`,
		":80@10.0.0.1":                               `name ""`,
		"wéb.com:80@10.0.0.1":                        "no domain name",
		strings.Repeat("a", 64) + ":80@10.0.0.1":     "no domain name",
		strings.Repeat("a.", 127) + "aa:80@10.0.0.1": "no domain name",
		"_http.web@10.0.0.1":                         "expected _PORT._tcp.NAME",
		"_http._tcp@10.0.0.1":                        "expected _PORT._tcp.NAME",
		"_http._quic.web@10.0.0.1":                   "expected _PORT._tcp.NAME",
		"_._tcp.web@10.0.0.1":                        "no domain name",
	} {
		if _, err := ParseDNS(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
