package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const hashDigits = 5

// Label returns the name of the Service for a name of a source: prefix and name unchanged if they
// are a DNS-1035 label. Otherwise it is in lower case, shortened, and has "-" for other characters.
// It ends with the hash of the name, so that "a_b" and "a.b" stay distinct. The same arguments
// always give the same label. The prefix must be a valid beginning of a label, or empty.
func Label(prefix, name string) string {
	if exact := prefix + name; len(validation.IsDNS1035Label(exact)) == 0 {
		return exact
	}
	base := []byte(strings.ToLower(prefix + name))
	for i, c := range base {
		if !isAlphanumeric(c) {
			base[i] = '-'
		}
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:])[:hashDigits]
	label := strings.TrimLeft(string(base), "-")
	if label == "" || label[0] < 'a' {
		label = "s-" + label
	}
	label = strings.TrimRight(label[:min(len(label), validation.DNS1035LabelMaxLength-hashDigits-1)], "-")
	return label + "-" + hash
}

func isAlphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// Named is a service of a source with the name of its Service in the cluster.
type Named struct {
	// Source is the name of its source.
	Source string
	// Label is the name of the Service.
	Label string
	// Service is the service at the source.
	Service Service
}

// Sourced holds the wanted services of one source.
type Sourced struct {
	// Source is the name of the source.
	Source string
	// Services in any order, each name once.
	Services []Service
}

// Assign gives each service its label. If several services have the same label, the earlier source
// gets it. Within a source the service whose name needed no change gets it, then the smaller name.
// The others become problems. The result is ordered by label and does not depend on the order of
// the services.
func Assign(prefix string, sources []Sourced) ([]Named, []Problem) {
	type candidate struct {
		Named
		rank    int
		changed int // 1 = its label differs from its name
	}
	var all []candidate
	for rank, source := range sources {
		for _, s := range source.Services {
			c := candidate{Named: Named{source.Source, Label(prefix, s.Name), s}, rank: rank}
			if c.Label != prefix+s.Name {
				c.changed = 1
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(
			strings.Compare(a.Label, b.Label), cmp.Compare(a.rank, b.rank), cmp.Compare(a.changed, b.changed), strings.Compare(a.Service.Name, b.Service.Name),
		)
	})
	var out []Named
	var problems []Problem
	for _, c := range all {
		if n := len(out); n > 0 && out[n-1].Label == c.Label {
			first := out[n-1]
			problems = append(problems, Problem{
				Source: c.Source, Service: c.Service.Name, Reason: ReasonCollision,
				Message: fmt.Sprintf("its name %s belongs to %s of %s", c.Label, printable(first.Service.Name), first.Source),
			})
			continue
		}
		out = append(out, c.Named)
	}
	return out, problems
}
