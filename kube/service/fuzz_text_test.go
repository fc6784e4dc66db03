package service_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// FuzzParseFrontendText: an accepted text is the same after it was written and read again. The
// error of another text gives the reason and the text.
func FuzzParseFrontendText(f *testing.F) {
	for _, text := range []string{"10.96.0.10:80/TCP", "[fd00::1]:53/UDP", "[::ffff:1.2.3.4]:1/SCTP", "[fe80::1%eth0]:80/TCP", "10.96.0.10:080/TCP", ":80/", "/", "1.2.3.4:80"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		where, protocol, err := service.ParseFrontendText(text)
		if err != nil {
			if !errors.Is(err, service.ErrFrontendText) {
				t.Fatalf("%q: %v is no ErrFrontendText", text, err)
			}
			return
		}
		written := service.AddressPortText(where.Addr().String(), uint32(where.Port())) + "/" + service.ProtocolWord(protocol)
		if again, sameProtocol, err := service.ParseFrontendText(written); err != nil || again != where || sameProtocol != protocol {
			t.Fatalf("%q is written as %q, which is read as %v, %v, %v", text, written, again, sameProtocol, err)
		}
	})
}

// FuzzParseNodePortAddresses: accepted words mean the same after they were written and read again.
// The error of other words names the word.
func FuzzParseNodePortAddresses(f *testing.F) {
	for _, text := range []string{"", "primary", "all", "all,primary", "10.0.0.0/8,fd00::/8", " 10.1.2.3/8", "::ffff:10.0.0.0/104", "10.0.0.0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, ",")
		parsed, err := service.ParseNodePortAddresses(words)
		if err != nil {
			if !errors.Is(err, service.ErrNodePortAddresses) {
				t.Fatalf("%q: %v is no ErrNodePortAddresses", text, err)
			}
			return
		}
		again, err := service.ParseNodePortAddresses(strings.Split(parsed.String(), ","))
		if err != nil || again.String() != parsed.String() {
			t.Fatalf("%q is written as %q, which is read as %q, %v", text, parsed, again, err)
		}
		node := nodeN1("192.168.0.2", "10.0.0.7", "2001:db8::2", "127.0.0.1")
		for _, family := range []messages.IPFamily{v4, v6} {
			if a, b := strings.Join(parsed.Select(node, family), " "), strings.Join(again.Select(node, family), " "); a != b || strings.Contains(a, "127.") {
				t.Fatalf("%q selects %q, written as %q it selects %q", text, a, parsed, b)
			}
		}
	})
}
