package consul

import (
	"fmt"
	"net/url"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// Options of a source.
type Options struct {
	// URL is http(s)://host:port of an agent or server.
	URL *url.URL
	// Datacenter to read; "" = the datacenter of the Consul agent.
	Datacenter string
	// Tag that an instance must have to be used; "" = no tag is required.
	Tag string
	// ExcludedTag excludes instances that have this tag; "" = no instance is excluded.
	ExcludedTag string
	// TokenFile holds the ACL token; "" = no token.
	TokenFile string
	// CAFile holds the certificates of the server's authority; "" = the roots of the system.
	CAFile string
	// Limits of the catalog.
	Limits catalog.Limits
}

// FromKubernetes is the tag that Consul's catalog sync gives to services of a Kubernetes cluster.
// Their instances would come back to the cluster that has them.
const FromKubernetes = "k8s"

// Parse returns the options in http(s)://host:port[?dc=name&tag=name&exclude-tag=name]. The error
// names the wrong part.
func Parse(text string) (Options, error) {
	out := Options{ExcludedTag: FromKubernetes}
	u, err := url.Parse(text)
	if err != nil {
		return out, fmt.Errorf("parse the URL of Consul: %w", err)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return out, fmt.Errorf("parse the query of the URL of Consul: %w", err)
	}
	bad := func(part, value string) (Options, error) {
		return out, fmt.Errorf("parse the URL of Consul: %s %q is not usable", part, value)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("scheme", u.Scheme)
	case u.User != nil:
		return out, fmt.Errorf("parse the URL of Consul: it must not have a user or password")
	case u.Hostname() == "" || u.Port() == "":
		return bad("host:port", u.Host)
	case u.Path != "" && u.Path != "/":
		return bad("path", u.Path)
	case u.Fragment != "":
		return bad("fragment", u.Fragment)
	}
	parameters := map[string]*string{"dc": &out.Datacenter, "tag": &out.Tag, "exclude-tag": &out.ExcludedTag}
	for key, values := range query {
		to := parameters[key]
		if to == nil || len(values) != 1 || values[0] == "" && key != "exclude-tag" {
			return bad("parameter", key)
		}
		*to = values[0]
	}
	u.Path, u.RawQuery = "/", ""
	out.URL = u
	return out, nil
}
