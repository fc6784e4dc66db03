package rule

import (
	"errors"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestParseKey(t *testing.T) {
	for _, text := range []string{
		"10.96.0.10:80/TCP", "10.96.0.10:53/UDP", "0.0.0.0:1/SCTP", "255.255.255.255:65535/47", "[fd00::1]:80/TCP", "10.0.0.1:0/0",
	} {
		key, err := ParseKey(text)
		if err != nil {
			t.Errorf("ParseKey(%q): %v", text, err)
		}
		if key.String() != text {
			t.Errorf("ParseKey(%q) is %q", text, key)
		}
	}
	for _, text := range []string{
		"", "10.96.0.10:80", "10.96.0.10/TCP", "10.96.0.10:80/tcp", "10.96.0.10:80/", "10.96.0.10:80/6", "10.96.0.10:80/06",
		"10.96.0.10:80/256", "10.96.0.10:80/-1", "10.96.0.10:70000/TCP", "web:80/TCP", "[fe80::1%eth0]:80/TCP", "10.96.0.10:80/TCP/UDP",
	} {
		if key, err := ParseKey(text); !errors.Is(err, ErrKey) {
			t.Errorf("ParseKey(%q) = %v, %v; want ErrKey", text, key, err)
		}
	}
}

func TestKeyOrder(t *testing.T) {
	var ordered []Key
	for _, text := range []string{"9.0.0.1:80/TCP", "10.0.0.1:79/UDP", "10.0.0.1:80/TCP", "10.0.0.1:80/UDP", "10.0.0.2:1/TCP"} {
		key, err := ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		ordered = append(ordered, key)
	}
	for i := range ordered {
		for j := range ordered {
			if got := ordered[i].Compare(ordered[j]); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("Compare(%s, %s) = %d", ordered[i], ordered[j], got)
			}
		}
	}
}

func genKey(t *rapid.T) Key {
	return Key{
		Addr:  netip.AddrFrom4([4]byte{10, 96, rapid.Byte().Draw(t, "net"), rapid.Byte().Draw(t, "host")}),
		Port:  rapid.Uint16().Draw(t, "port"),
		Proto: rapid.Byte().Draw(t, "proto"),
	}
}

func TestKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := genKey(t)
		got, err := ParseKey(key.String())
		if err != nil || got != key {
			t.Fatalf("ParseKey(%q) = %v, %v", key, got, err)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add("10.96.0.10:80/TCP")
	f.Add("[fd00::1]:53/UDP")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseKey(text)
		if err != nil {
			return
		}
		if again, err := ParseKey(key.String()); err != nil || again != key {
			t.Errorf("%q is read as %q, which is read as %v, %v", text, key, again, err)
		}
	})
}
