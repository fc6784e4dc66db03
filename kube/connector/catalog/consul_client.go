package catalog

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/kube/outbound"
)

const (
	block   = 30 * time.Second // limit of a blocking query; Consul adds up to a sixteenth
	timeout = 15 * time.Second // timeout of other queries, and of an answer that is due

	headerBytes = 64 << 10 // of an answer
)

// client sends queries. Its methods may be called by any goroutine.
type client struct {
	options ConsulOptions
	http    *http.Client
	turns   chan struct{} // of large answers
}

func newClient(o ConsulOptions) (*client, error) {
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: timeout}).DialContext, IdleConnTimeout: block,
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, MaxResponseHeaderBytes: headerBytes,
	}
	if o.CAFile != "" {
		if _, err := pool(o.CAFile); err != nil {
			return nil, err
		}
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			roots, err := pool(o.CAFile) // read for each connection, because the file may rotate
			if err != nil {
				return nil, err
			}
			return (&tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, network, address)
		}
	}
	return &client{o, outbound.Client(o.URL, transport, 0), make(chan struct{}, turns)}, nil
}

// pool reads the certificates of a file.
func pool(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, own("read the CA file of Consul: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, own("read the CA file of Consul: no certificate in %s", file)
	}
	return roots, nil
}

// get reads the path below /v1 that the segments form, decodes its answer of at most that many
// bytes, and returns the index for the next query. With an index it waits until Consul's index
// differs. The error quotes nothing of the answer.
func (c *client) get(ctx context.Context, index uint64, most int, decode func(*answer) error, segments ...string) (uint64, error) {
	limit := timeout
	if index > 0 {
		limit += block + block/16
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := c.request(ctx, index, segments)
	if err != nil {
		return 0, err
	}
	path := request.URL.Path
	response, err := c.http.Do(request)
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", path, harmless(err))
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("get %s: status %d %s", path, response.StatusCode, http.StatusText(response.StatusCode))
	case response.Header.Get("X-Consul-KnownLeader") == "false":
		return 0, fmt.Errorf("get %s: no leader is known", path)
	case response.Header.Get("X-Consul-Results-Filtered-By-ACLs") == "true":
		return 0, fmt.Errorf("get %s: the answer is filtered by ACL: the token must be allowed to read every service and node", path)
	case request.Header.Get(tokenHeader) == "" && response.Header.Get("X-Consul-Default-ACL-Policy") == "deny":
		// Consul filters the answer in this case, and does not say so.
		return 0, fmt.Errorf("get %s: a token is needed: the default policy of Consul is deny", path)
	}
	next, err := strconv.ParseUint(response.Header.Get("X-Consul-Index"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("get %s: read the index: X-Consul-Index is no number", path)
	}
	body := &answer{ctx: ctx, in: response.Body, turns: c.turns, most: most}
	defer body.close()
	if err := decode(body); err != nil {
		return 0, fmt.Errorf("get %s: %w", path, err)
	}
	return nextIndex(index, next), nil
}

// tokenHeader is the header of a request that has the token.
const tokenHeader = "X-Consul-Token"

// request returns the request for the segments of a path.
func (c *client) request(ctx context.Context, index uint64, segments []string) (*http.Request, error) {
	u := c.options.URL.JoinPath("v1")
	for _, segment := range segments {
		u = u.JoinPath(url.PathEscape(segment))
	}
	query := url.Values{}
	if c.options.Datacenter != "" {
		query.Set("dc", c.options.Datacenter)
	}
	if index > 0 {
		query.Set("index", strconv.FormatUint(index, 10))
		query.Set("wait", block.String())
	}
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set(tokenHeader, token)
	}
	return request, nil
}

// token reads the token from its file, for each query.
func (c *client) token() (string, error) {
	if c.options.TokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(c.options.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("read the token: %s is empty", c.options.TokenFile)
	}
	return token, nil
}

// nextIndex returns the index for the query after an answer. It is at least 1. If the index went
// back, it is 0, so that the next query does not block.
func nextIndex(last, next uint64) uint64 {
	if next < last {
		return 0
	}
	return max(next, 1)
}

// ConsulOptions of a source.
type ConsulOptions struct {
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
	Limits Limits
}

// FromKubernetes is the tag that Consul's catalog sync gives to services of a Kubernetes cluster.
// Their instances would come back to the cluster that has them.
const FromKubernetes = "k8s"

// ParseConsul returns the options in http(s)://host:port[?dc=name&tag=name&exclude-tag=name]. The
// error names the wrong part.
func ParseConsul(text string) (ConsulOptions, error) {
	out := ConsulOptions{ExcludedTag: FromKubernetes}
	u, err := url.Parse(text)
	if err != nil {
		return out, fmt.Errorf("parse the URL of Consul: %w", err)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return out, fmt.Errorf("parse the query of the URL of Consul: %w", err)
	}
	bad := func(part, value string) (ConsulOptions, error) {
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

// ownError is an error in the words of this package.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// own returns an error that quotes nothing of what a server has sent.
func own(format string, args ...any) error { return ownError{fmt.Errorf(format, args...)} }

// harmless returns the error of a request without any words of the server. A reason phrase, a
// header, a body or a certificate may repeat the token, and errors appear in the log and the API.
func harmless(err error) error {
	var (
		mine      ownError
		network   *net.OpError
		wrongType *json.UnmarshalTypeError
		syntax    *json.SyntaxError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &mine):
		return mine
	case errors.As(err, &authority):
		return own("certificate signed by unknown authority")
	case errors.As(err, &name):
		return own("the certificate is for other names")
	case errors.As(err, &invalid):
		return own("the certificate is not valid: reason %d of crypto/x509", invalid.Reason)
	case errors.As(err, &network):
		return ownError{network}
	case errors.As(err, &wrongType):
		return own("%s has the wrong type", wrongType.Field)
	case errors.As(err, &syntax):
		return own("no JSON at byte %d", syntax.Offset)
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF, io.EOF, http.ErrSchemeMismatch} {
		if errors.Is(err, known) {
			return ownError{known}
		}
	}
	return own("the answer is no HTTP that can be read")
}
