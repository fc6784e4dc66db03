package files

import (
	"strings"
	"testing"
)

// TestHeaderErrorsAreStable: if two fields are wrong, the error always names the same one, so that
// a file always gives the same problem.
func TestHeaderErrorsAreStable(t *testing.T) {
	for range 100 {
		_, problems := Decode(strings.NewReader("apiVersion: 7\nkind: 8\n"), "f")
		if len(problems) != 1 || problems[0].GetMessage() != "apiVersion: is not a string" {
			t.Fatalf("problems %v", problems)
		}
	}
}
