package config

import "testing"

// FuzzDuration: a duration that is read is written as the same, without loss.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"5s", "1m30s", "1h0m0s", "-1ns", "1.5h", "10", "", "9223372036854775807ns", "100h1ns"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d, again Duration
		if d.UnmarshalText([]byte(text)) != nil {
			return
		}
		written, err := d.MarshalText()
		if err == nil {
			err = again.UnmarshalText(written)
		}
		if err != nil || again != d {
			t.Fatalf("%q is %d, written as %q, which is %d, %v", text, d, written, again, err)
		}
	})
}
