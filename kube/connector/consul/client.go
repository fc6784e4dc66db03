package consul

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
)

const (
	wait    = 30 * time.Second // of one blocking query; Consul adds up to a sixteenth
	timeout = 15 * time.Second // of another one, and of an answer that is due
)

// client makes queries. Its methods may be called by any goroutine.
type client struct {
	options Options
	http    *http.Client
}

func newClient(o Options) (*client, error) {
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: timeout}).DialContext, IdleConnTimeout: wait,
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections,
	}
	if o.CAFile != "" {
		if _, err := pool(o.CAFile); err != nil {
			return nil, err
		}
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			roots, err := pool(o.CAFile) // for each connection: it may rotate
			if err != nil {
				return nil, err
			}
			return (&tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, network, address)
		}
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // would carry the token elsewhere
	return &client{o, &http.Client{Transport: transport, CheckRedirect: refuse}}, nil
}

// pool reads the certificates of a file.
func pool(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the CA file of Consul: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the CA file of Consul: no certificate in %s", file)
	}
	return roots, nil
}

// get returns the answer of segments of a path below /v1, and the index to ask with next. With an index it waits until that of the answer is another one.
func (c *client) get(ctx context.Context, index uint64, segments ...string) ([]byte, uint64, error) {
	limit := timeout
	if index > 0 {
		limit += wait + wait/16
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
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
		query.Set("wait", wait.String())
	}
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, 0, err
	}
	token, err := c.token()
	if err != nil {
		return nil, 0, err
	}
	if token != "" {
		request.Header.Set("X-Consul-Token", token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode != http.StatusOK:
		return nil, 0, fmt.Errorf("get %s: %s", u.Path, answer.Status)
	case answer.Header.Get("X-Consul-KnownLeader") == "false":
		return nil, 0, fmt.Errorf("get %s: no leader is known", u.Path)
	case answer.Header.Get("X-Consul-Results-Filtered-By-ACLs") == "true":
		return nil, 0, fmt.Errorf("get %s: the answer is filtered by ACL: the token must be allowed to read every service and node", u.Path)
	case token == "" && answer.Header.Get("X-Consul-Default-ACL-Policy") == "deny": // Consul filters then, and does not say so
		return nil, 0, fmt.Errorf("get %s: a token is needed: the default policy of Consul is deny", u.Path)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(c.options.Limits.Body)+1))
	if err != nil {
		return nil, 0, fmt.Errorf("get %s: %w", u.Path, err)
	}
	if len(body) > c.options.Limits.Body {
		return nil, 0, errors.New("the answer is too large")
	}
	next, err := strconv.ParseUint(answer.Header.Get("X-Consul-Index"), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("get %s: read the index: %w", u.Path, err)
	}
	return body, nextIndex(index, next), nil
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

// nextIndex returns the index to ask with after an answer: never below 1, and 0, so without blocking, where it went back.
func nextIndex(last, next uint64) uint64 {
	if next < last {
		return 0
	}
	return max(next, 1)
}
