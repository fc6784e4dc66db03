package agent

import (
	"strings"
	"testing"
)

// TestErrorsQuoteNoSecret: the document of something else is refused without its words.
func TestErrorsQuoteNoSecret(t *testing.T) {
	for _, document := range []string{
		"s3cr3t: 1\ns3cr3t: 2\n", "a: *s3cr3t\n", "a: !!s3cr3t b\n", "a: \"s3cr3t\n", "a: 's3cr3t\n", "? [s3cr3t]\n: 1\n", "a: b: s3cr3t\n", "%s3cr3t\n", "{a: s3cr3t", "a: \"\\s3cr3t\"",
		"a: !!int s3cr3t", "a: !!float s3cr3t\n", "- s3cr3t\nb: s3cr3t\n",
	} {
		if out, err := documentJSON([]byte(document)); err == nil {
			t.Logf("%q is %s", document, out)
		} else if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", document, err)
		}
	}
}
