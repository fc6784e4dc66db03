package service_test

import (
	"errors"
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

func TestFrontendText(t *testing.T) {
	for _, test := range []struct {
		address  string
		port     uint32
		protocol messages.Protocol
		want     string
	}{
		{"10.96.0.10", 80, tcp, "10.96.0.10:80/TCP"},
		{"fd00:96::10", 53, udp, "[fd00:96::10]:53/UDP"},
		{"::1", 65535, messages.Protocol_SCTP, "[::1]:65535/SCTP"},
	} {
		text := service.FrontendText(&messages.Frontend{Address: test.address, Port: test.port, Protocol: test.protocol})
		if text != test.want {
			t.Errorf("got %s, want %s", text, test.want)
		}
		where, protocol, err := service.ParseFrontendText(text)
		if err != nil || where.Addr().String() != test.address || uint32(where.Port()) != test.port || protocol != test.protocol {
			t.Errorf("%s reads back as %v %v %v", text, where, protocol, err)
		}
	}
	if got := service.BackendText(&messages.Backend{Address: "fd00::1", Port: 8080}); got != "[fd00::1]:8080" {
		t.Errorf("backend: %s", got)
	}
}

func TestParseFrontendTextRefusesOtherTexts(t *testing.T) {
	for _, text := range []string{"", "10.0.0.1:80", "10.0.0.1:80/tcp", "10.0.0.1/TCP", "10.0.0.1:99999/TCP", "fd00::1:80/TCP", "10.0.0.1:80/TCP/UDP"} {
		if _, _, err := service.ParseFrontendText(text); !errors.Is(err, service.ErrFrontendText) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestWords: every value of the enums has its own word, and no other value has one.
func TestWords(t *testing.T) {
	check := func(kind string, names map[int32]string, word func(int32) string, nameless int32) {
		t.Helper()
		seen := map[string]bool{}
		for value := range names {
			w := word(value)
			if (w == "unknown") != (value == nameless) || seen[w] {
				t.Errorf("%s %d: %q", kind, value, w)
			}
			seen[w] = true
		}
		if w := word(99); w != "unknown" {
			t.Errorf("%s 99: %q", kind, w)
		}
	}
	const none = -1
	check("scope", messages.Scope_name, func(v int32) string { return service.Word(messages.Scope(v)) }, none)
	check("kind", messages.FrontendKind_name, func(v int32) string { return service.KindWord(messages.FrontendKind(v)) }, none)
	check("from", messages.ClientClass_name, func(v int32) string { return service.Word(messages.ClientClass(v)) }, none)
	check("action", messages.Action_name, func(v int32) string { return service.Word(messages.Action(v)) }, none)
	check("protocol", messages.Protocol_name, func(v int32) string { return service.ProtocolWord(messages.Protocol(v)) }, 0)
	for value := range messages.Protocol_name {
		if p := messages.Protocol(value); service.ParseProtocol(service.ProtocolWord(p)) != p {
			t.Errorf("%s does not read back", p)
		}
	}
}
