package main

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

// TestWithoutVPP: the calls that need neither VPP nor the state of a node.
func TestWithoutVPP(t *testing.T) {
	for name, tc := range map[string]struct {
		env   map[string]string
		stdin string
		code  int
		want  string // in the output
	}{
		"VERSION":      {map[string]string{"CNI_COMMAND": "VERSION"}, "{}", 0, `{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}`},
		"no container": {map[string]string{"CNI_COMMAND": "ADD", "CNI_IFNAME": "eth0", "CNI_NETNS": "/n"}, "{}", 1, `"code":4,"msg":"CNI_CONTAINERID, `},
		"no network":   {map[string]string{"CNI_COMMAND": "ADD", "CNI_IFNAME": "eth0", "CNI_CONTAINERID": "c"}, "{}", 1, `"code":4,"msg":"CNI_CONTAINERID, `},
		"no JSON": {
			map[string]string{"CNI_COMMAND": "DEL", "CNI_IFNAME": "eth0", "CNI_CONTAINERID": "c"},
			"", 1,
			`{"cniVersion":"1.0.0","code":6,"msg":"read network configuration: EOF"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			code := runPlugin(func(key string) string { return tc.env[key] }, strings.NewReader(tc.stdin), &out)
			if code != tc.code || !strings.Contains(out.String(), tc.want) {
				t.Errorf("exit %d, %s; want %d, %s", code, out.String(), tc.code, tc.want)
			}
		})
	}
}

// TestWords: what the runtime passes on becomes words of ip(8), so it is one word.
func TestWords(t *testing.T) {
	for _, tc := range []struct {
		device, namespace string
		ok                bool
	}{
		{"eth0", "/var/run/netns/cni-1234", true},
		{"net1.5", "/proc/17/ns/net", true},
		{"eth0", "", true},
		{"eth0\nlink del eth0", "/n", false},
		{"eth0 up", "/n", false},
		{"a/b", "/n", false},
		{"-force", "/n", false},
		{"..", "/n", false},
		{"abcdefghijklmnop", "/n", false},
		{"", "/n", false},
		{"eth0", "netns", false},
		{"eth0", "/n x", false},
		{"eth0", "/n\nlink del eth0", false},
		{"eth0", "/n;x", false},
	} {
		if got := isDevice(tc.device) && isNamespace(tc.namespace); got != tc.ok {
			t.Errorf("%q, %q: %t", tc.device, tc.namespace, got)
		}
	}
	var out bytes.Buffer
	env := map[string]string{"CNI_COMMAND": "ADD", "CNI_IFNAME": "eth0\nlink del eth0", "CNI_CONTAINERID": "c", "CNI_NETNS": "/n"}
	if code := runPlugin(func(key string) string { return env[key] }, strings.NewReader("{}"), &out); code != 1 || !strings.Contains(out.String(), `"code":4`) {
		t.Errorf("exit %d, %s", code, out.String())
	}
}

// TestResult is the answer to ADD as the specification of CNI has it.
func TestResult(t *testing.T) {
	r := &request{device: "eth0", namespace: "/run/netns/x"}
	got, err := json.Marshal(r.describe(attachment{Link: "poda", Addresses: []netip.Addr{netip.MustParseAddr("10.1.1.3"), netip.MustParseAddr("fd00:1::3")}}))
	const want = `{"cniVersion":"1.0.0","interfaces":[{"mac":"02:ca:00:00:00:01","name":"poda"},` +
		`{"mac":"02:ca:e6:74:09:c7","name":"eth0","sandbox":"/run/netns/x"}],` +
		`"ips":[{"address":"10.1.1.3/32","gateway":"169.254.1.1","interface":1},{"address":"fd00:1::3/128","gateway":"fe80::1","interface":1}],` +
		`"routes":[{"dst":"0.0.0.0/0","gw":"169.254.1.1"},{"dst":"::/0","gw":"fe80::1"}]}`
	if err != nil || string(got) != want {
		t.Errorf("result\n%s, %v, want\n%s", got, err, want)
	}
}
