package look

import "testing"

// TestCompletionsAreWords: a shell runs nothing of what an agent has named.
func TestCompletionsAreWords(t *testing.T) {
	for text, want := range map[string]bool{
		"shop/web": true, "agent/world/services/shop~web": true, "kube-system/kube-dns.v2": true,
		"a/$(reboot)": false, "a/`b`": false, "a b": false, "a\nb": false, "a;b": false, "a\x1b[2J": false, "a\tb": false,
	} {
		if got := isPath(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
