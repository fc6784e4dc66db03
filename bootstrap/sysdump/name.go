package sysdump

import "strings"

// mostName is the length of the longest name of an object in Kubernetes.
const mostName = 253

// IsName reports whether a text is a DNS subdomain, as the names of nodes, namespaces and services
// are. Only such a text becomes a part of a path.
func IsName(text string) bool {
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return len(text) <= mostName && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.')
	})
}
