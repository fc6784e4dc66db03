package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/outbound"
)

// Limits in bytes: of an answer, where a page of the largest list has a few hundred KB, and of all
// pages of a list.
const (
	maxAnswer = 64 << 20
	maxList   = 256 << 20
)

// timeout limits one call. It is longer than the deadline after which the agent answers with an
// error.
const timeout = 15 * time.Second

// AgentError is an error answer of the agent.
type AgentError struct {
	// Status is the HTTP status.
	Status int
	// Message of the agent.
	Message string
}

// Error satisfies error.
func (e *AgentError) Error() string { return e.Message }

// Is makes errors.Is work with the errors of package api.
func (e *AgentError) Is(target error) bool { return e.Status == api.Code(target) }

// Client queries one running agent through its HTTP server (package api): over TCP, read-only, or
// over the control socket. It is safe for concurrent use and starts no goroutine that outlives a
// call.
type Client struct {
	http *http.Client
	base string
	name string // of the agent, in errors
	// budget is for all answers together; nil = each answer has its own.
	budget *Budget
}

// NewClient returns a client for an agent at a TCP address, "127.0.0.1:9990".
func NewClient(address string) *Client {
	return NewThrough(transport("tcp", address), &url.URL{Scheme: "http", Host: address}, address+" (--address, or $TROUPE_AGENT)")
}

// NewControl returns a client for an agent at the path of its control socket.
func NewControl(path string) *Client {
	return NewThrough(transport("unix", path), &url.URL{Scheme: "http", Host: "agent"}, path+" (--control-socket, or $TROUPE_AGENT)")
}

// NewThrough returns a client for an agent whose paths are below a URL, to which a transport leads.
// Errors name the agent by name.
func NewThrough(through http.RoundTripper, base *url.URL, name string) *Client {
	return &Client{http: outbound.Client(base, through, timeout), base: base.String(), name: name}
}

// Limited returns a client whose answers are read from a budget.
func (c *Client) Limited(b *Budget) *Client {
	limited := *c
	limited.budget = b
	return &limited
}

// read reads an answer.
func (c *Client) read(response *http.Response) ([]byte, error) {
	budget := c.budget
	if budget == nil {
		budget = NewBudget(maxAnswer)
	}
	content, err := budget.Read(response.Body, maxAnswer)
	if err != nil {
		return nil, fmt.Errorf("read the answer of the agent at %s: %w", c.name, err)
	}
	return content, nil
}

// transport connects to one address, regardless of the URL, without proxies and keep-alive.
func transport(network, address string) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, address)
		},
	}
}

// Get reads a resource below /api/v1/ and decodes the answer.
func (c *Client) Get(ctx context.Context, resource string, query url.Values, into any) error {
	target := "/api/v1/" + resource
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return c.do(ctx, http.MethodGet, target, nil, into)
}

// Post sends a state-changing call. Only the control socket accepts it.
func (c *Client) Post(ctx context.Context, resource string, body any) error {
	return c.PostFor(ctx, resource, body, nil)
}

// PostFor is Post with an answer to decode.
func (c *Client) PostFor(ctx context.Context, resource string, body, into any) error {
	return c.do(ctx, http.MethodPost, "/api/v1/"+resource, body, into)
}

// Put replaces a resource by an unmodified document and decodes the answer. Only the control socket
// accepts it.
func (c *Client) Put(ctx context.Context, resource string, document []byte, into any) error {
	return c.do(ctx, http.MethodPut, "/api/v1/"+resource, json.RawMessage(document), into)
}

// Delete deletes a resource and decodes the answer. Only the control socket accepts it.
func (c *Client) Delete(ctx context.Context, resource string, into any) error {
	return c.do(ctx, http.MethodDelete, "/api/v1/"+resource, nil, into)
}

// Stream reads server-sent events and calls a function with the data of each. It ends when the
// agent ends the stream, ctx ends, or the function returns an error. The end of ctx is no error.
func (c *Client) Stream(ctx context.Context, resource string, query url.Values, each func(data []byte) error) error {
	endless := *c.http
	endless.Timeout = 0
	response, err := (&Client{http: &endless, base: c.base, name: c.name, budget: c.budget}).send(ctx, http.MethodGet, "/api/v1/"+resource+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		// a part of the reason is better than no reason
		content, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		return refusal(response.StatusCode, content)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, is := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); is {
			if err := each(data); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read the answer of the agent at %s: %w", c.name, err)
	}
	return nil
}

// Text reads a resource that answers with text for every status, for example readyz?verbose.
func (c *Client) Text(ctx context.Context, target string) (text string, status int, err error) {
	response, err := c.send(ctx, http.MethodGet, "/"+target, nil)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	content, err := c.read(response)
	if err == nil && response.StatusCode/100 == 3 {
		err = refusal(response.StatusCode, nil)
	}
	return string(content), response.StatusCode, err
}

// do sends a request and decodes the answer; nil = the answer is not needed.
func (c *Client) do(ctx context.Context, method, target string, body, into any) error {
	response, err := c.send(ctx, method, target, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := c.read(response)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return refusal(response.StatusCode, content)
	}
	if into == nil {
		return nil
	}
	if err := Decode(content, into); err != nil {
		return fmt.Errorf("decode the answer of the agent at %s: %w", c.name, err)
	}
	return nil
}

// send sends a request. Its errors name the address of the agent, which is the usual cause.
func (c *Client) send(ctx context.Context, method, target string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+target, content)
	if err != nil {
		return nil, fmt.Errorf("ask the agent at %s: %w", c.name, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the URL has no further information
		}
		return nil, fmt.Errorf("ask the agent at %s: %w", c.name, err)
	}
	return response, nil
}

// refusal returns the error in an answer.
func refusal(status int, content []byte) error {
	var answer api.Error
	if status/100 == 3 {
		answer.Error = http.StatusText(status) + ": what answers is no agent: it redirects elsewhere, which the command does not follow"
	} else if json.Unmarshal(content, &answer) != nil || answer.Error == "" {
		answer.Error = strings.TrimSpace(http.StatusText(status) + " " + string(content[:min(len(content), 200)]))
	}
	return &AgentError{Status: status, Message: answer.Error}
}

// errEndless means that the pages of a list do not end.
var errEndless = errors.New("its pages do not end: a page comes again, or has more items than were asked for")

// All reads every page of a list, up to most items; 0 = all. It may miss items that were added
// meanwhile, and may contain deleted ones.
func All[T any](ctx context.Context, c *Client, resource string, query url.Values, most int) (items []T, total int, err error) {
	all, err := pages[api.Page[T], T](ctx, c, resource, query, most)
	if err != nil {
		return nil, 0, err
	}
	return all.Items, all.Total, nil
}

// Whole reads every page of a resource that has fields besides its list.
func Whole[T, I any, P api.Paged[T, I]](ctx context.Context, c *Client, resource string) (*T, error) {
	return pages[T, I, P](ctx, c, resource, nil, 0)
}

// pages reads pages until they have most items, 0 = all, and returns the last one with the items of
// all.
func pages[T, I any, P api.Paged[T, I]](ctx context.Context, c *Client, resource string, query url.Values, most int) (*T, error) {
	asked, seen, items := url.Values{}, map[string]bool{}, []I(nil)
	maps.Copy(asked, query)
	if c.budget == nil {
		c = c.Limited(NewBudget(maxList))
	}
	for {
		limit := api.MaxLimit
		if most > 0 {
			limit = min(limit, most-len(items))
		}
		asked.Set("limit", strconv.Itoa(limit))
		page := new(T)
		if err := c.Get(ctx, resource, asked, page); err != nil {
			return nil, err
		}
		list := P(page).List()
		items = append(items, list.Items...)
		switch done := list.Next == "" || most > 0 && len(items) >= most; {
		case len(list.Items) > limit, !done && seen[list.Next]:
			return nil, fmt.Errorf("list %s of the agent at %s: %w", resource, c.name, errEndless)
		case done:
			list.Items = items
			return page, nil
		}
		seen[list.Next] = true
		asked.Set("cursor", list.Next)
	}
}

// ErrTooLarge means that a server or an archive has more than the reader takes.
var ErrTooLarge = errors.New("above the limit of size")

// Budget is a number of bytes that may still be read, for several answers together. Others choose
// the sizes of answers and the number of pages, so everything that they send is read from one. It
// is safe for concurrent use, where it may be exceeded by one answer of each user.
type Budget struct{ left atomic.Int64 }

// NewBudget returns a budget of so many bytes.
func NewBudget(size int64) *Budget {
	b := &Budget{}
	b.left.Store(size)
	return b
}

// Read reads all, at most so many bytes and what is left. The error is ErrTooLarge if there is
// more; then nothing is left.
func (b *Budget) Read(from io.Reader, most int64) ([]byte, error) {
	limit := min(most, b.left.Load())
	content, err := io.ReadAll(io.LimitReader(from, limit+1))
	b.left.Add(-int64(len(content)))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		b.left.Store(0)
		return nil, ErrTooLarge
	}
	return content, nil
}

// Limits of the density of a document. An object of the API takes 24 bytes of JSON and more; "{}"
// takes two, and a hundred times that when it is decoded.
const (
	leastObject  = 24   // bytes for each object, on average
	smallObjects = 4096 // for which that does not matter
)

// Decode decodes a JSON document of another program. It refuses a document with so many objects in
// so few bytes that decoding would multiply its size.
func Decode(content []byte, into any) error {
	if n := bytes.Count(content, []byte("{")) + bytes.Count(content, []byte("[")); n > smallObjects+len(content)/leastObject {
		return fmt.Errorf("%d objects in %d bytes: %w", n, len(content), ErrTooLarge)
	}
	return json.Unmarshal(content, into)
}
