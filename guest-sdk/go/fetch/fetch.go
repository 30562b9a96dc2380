// Package fetch makes HTTP requests to the hosts that the contract declares, the
// driver's egress list names and the operator grants. The host makes them: it
// decides by host, port, scheme and method, puts secrets in, and follows no
// redirects. Package nethttp does the same behind [net/http.Client], in a component
// of 12 MB instead of 5.
//
// A component that uses this package imports wasi:http, and one that does so
// without declaring network is refused. Outside a component, in a driver's own
// tests, every request is denied.
package fetch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"toolward"
)

// DefaultMaxBytes is the longest body of a response that is read where the request
// says nothing else.
const DefaultMaxBytes = 4 << 20

// Longest URL that is looked at.
const maxURL = 8192

// Longest piece of a failed response's body that an error shows.
const maxShown = 512

// A Header has the values of each name. It converts to and from net/http's.
type Header map[string][]string

// Get is the first value of this name, names being equal in any case.
func (header Header) Get(name string) string {
	for key, values := range header {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// A Request is one request. The host takes no host, proxy-* or hop-by-hop headers
// from a driver, and authorization and cookie only where they are made of a
// [toolward.Secret]'s placeholder or policy lets them pass.
type Request struct {
	// Method is GET where it is empty. GET, HEAD and OPTIONS need
	// requires.network, the others mutates: network:HOST.
	Method string
	// URL begins with https://, or where policy allows it with http://.
	URL    string
	Header Header
	Body   []byte
	// Timeout is the longest wait for the connection, for the first byte of the
	// answer, and between two bytes of it. The call's own deadline holds anyway.
	Timeout time.Duration
	// MaxBytes is the longest body of a response to take, [DefaultMaxBytes] where
	// it is 0. A longer one is an error with the code http:body_too_large.
	MaxBytes int
}

// A Response is an answer, whatever its status.
type Response struct {
	Status int
	Header Header
	Body   []byte
}

// Get makes a GET request.
func Get(url string) (*Response, error) { return Do(&Request{URL: url}) }

// Do sends a request and reads the answer. It fails with the code input_invalid
// for a URL or header that is none; unauthorised where the host is not declared or
// granted, or does not take a header from a driver; rate_limited at the limit of
// requests; http:body_too_large; and upstream_error for all that can go wrong on
// the way, retryable where the same request may succeed later.
func Do(request *Request) (*Response, error) {
	asked := *request
	if asked.Method == "" {
		asked.Method = "GET"
	}
	if asked.MaxBytes == 0 {
		asked.MaxBytes = DefaultMaxBytes
	}
	target, err := split(asked.URL)
	if err != nil {
		return nil, err
	}
	response, err := send(&asked, target)
	if err != nil {
		return nil, err
	}
	if len(response.Body) > asked.MaxBytes {
		return nil, toolward.Errorf("http:body_too_large", "the answer to %s is longer than %d bytes", asked.shown(), asked.MaxBytes)
	}
	return response, nil
}

// JSON reads the body as encoding/json does.
func (response *Response) JSON(value any) error {
	if err := json.Unmarshal(response.Body, value); err != nil {
		return toolward.Errorf("upstream_error", "the response is not the JSON expected: %w", err)
	}
	return nil
}

// Success is nil where the status is one of 200 to 299. Else it is an error with
// the code upstream_error and the status and the start of the body as cause,
// retryable for 429, 502, 503 and 504, after the time that the server asks for.
func (response *Response) Success() error {
	if response.Status >= 200 && response.Status < 300 {
		return nil
	}
	body := response.Body[:min(len(response.Body), maxShown)]
	failed := toolward.Errorf("upstream_error", "the server answered with status %d", response.Status)
	failed.Cause = map[string]any{"status": response.Status, "body": strings.ToValidUTF8(string(body), "�")}
	failed.Retryable = slices.Contains([]int{429, 502, 503, 504}, response.Status)
	if response.Status == 429 || response.Status == 503 {
		seconds, err := strconv.Atoi(strings.TrimSpace(response.Header.Get("retry-after")))
		if err == nil && seconds > 0 {
			failed.RetryAfter = time.Duration(min(seconds, 1<<30)) * time.Second
		}
	}
	return failed
}

// A target is what a URL says. What a host name means, and whether it may be
// reached, is the host's to say.
type target struct {
	secure          bool
	authority, path string
}

func split(url string) (target, error) {
	invalid := func(problem string) (target, error) {
		return target{}, toolward.Errorf("input_invalid", "the URL %.200s %s", url, problem)
	}
	scheme, rest, found := strings.Cut(url, "://")
	scheme = strings.ToLower(scheme)
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	switch {
	case !found:
		return invalid("has no `https://` at its start")
	case scheme != "http" && scheme != "https":
		return invalid("is neither https nor http")
	case len(url) > maxURL:
		return invalid("is too long")
	case strings.ContainsFunc(url, func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f }):
		return invalid("holds a space, a backslash or a control character")
	case authority == "":
		return invalid("names no host")
	case strings.Contains(authority, "@"):
		return invalid("holds a user name or a password")
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return target{scheme == "https", authority, path}, nil
}

// shown is the request in messages: without its query, which may hold what nobody
// else should read.
func (request *Request) shown() string {
	url, _, _ := strings.Cut(request.URL, "#")
	url, _, _ = strings.Cut(url, "?")
	return fmt.Sprintf("%s %.200s", request.Method, url)
}

func (request *Request) denied() *toolward.Error {
	return toolward.Errorf("unauthorised", "%s is not granted: the contract, the driver's egress list and the operator's policy all have to allow it", request.shown())
}
