package consul

import (
	"fmt"
	"net/url"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// Options of a source.
type Options struct {
	// URL is http(s)://host:port of an agent or server, see ParseURL.
	URL *url.URL
	// TokenFile holds the ACL token; "" = none.
	TokenFile string
	// CAFile holds the certificates that sign the server's; "" = those of the system.
	CAFile string
	// Limits of what is read.
	Limits catalog.Limits
}

// ParseURL returns the address in http(s)://host:port[?dc=name]. The error names the part that is wrong.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse the URL of Consul: %w", err)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("parse the query of the URL of Consul: %w", err)
	}
	bad := func(part, value string) (*url.URL, error) {
		return nil, fmt.Errorf("parse the URL of Consul: %s %q is not usable", part, value)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("scheme", u.Scheme)
	case u.User != nil:
		return nil, fmt.Errorf("parse the URL of Consul: it must not have a user or password")
	case u.Hostname() == "" || u.Port() == "":
		return bad("host:port", u.Host)
	case u.Path != "" && u.Path != "/":
		return bad("path", u.Path)
	case u.Fragment != "":
		return bad("fragment", u.Fragment)
	}
	for key, values := range query {
		if key != "dc" || len(values) != 1 || values[0] == "" {
			return bad("parameter", key)
		}
	}
	return u, nil
}
