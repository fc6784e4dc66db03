package consul

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	wait    = time.Minute      // of one blocking query
	timeout = 75 * time.Second // Consul adds up to a sixteenth to wait
)

// client makes blocking queries. Its methods may be called by any goroutine.
type client struct {
	options Options
	http    *http.Client
}

func newClient(o Options) (*client, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: wait}
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA file of Consul: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read the CA file of Consul: no certificate in %s", o.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // would carry the token elsewhere
	return &client{o, &http.Client{Transport: transport, CheckRedirect: refuse}}, nil
}

// get returns the answer of segments of a path below /v1, once its index is no longer index, and the index to ask with next.
func (c *client) get(ctx context.Context, index uint64, segments ...string) ([]byte, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u := c.options.URL.JoinPath("v1")
	for _, segment := range segments {
		u = u.JoinPath(url.PathEscape(segment))
	}
	query := c.options.URL.Query()
	if index > 0 {
		query.Set("index", strconv.FormatUint(index, 10))
		query.Set("wait", wait.String())
	}
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, 0, err
	}
	if c.options.TokenFile != "" {
		token, err := os.ReadFile(c.options.TokenFile)
		if err != nil {
			return nil, 0, fmt.Errorf("read the token: %w", err)
		}
		request.Header.Set("X-Consul-Token", strings.TrimSpace(string(token)))
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
		return nil, 0, fmt.Errorf("get %s: the answer is filtered by ACL", u.Path)
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

// nextIndex returns the index to ask with after an answer: never below 1, and 0, so without blocking, where it went back.
func nextIndex(last, next uint64) uint64 {
	if next < last {
		return 0
	}
	return max(next, 1)
}
