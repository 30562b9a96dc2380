// Package nethttp makes the requests of package fetch behind [net/http.Client].
//
// The host follows no redirects, and a client that does needs a grant for each
// host on the way. Errors of the host keep their codes through the client.
package nethttp

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"toolward/fetch"
	"toolward/internal/host"
)

func init() {
	// The query may hold what nobody else should read.
	host.Shown = func(err error) error {
		if failed, is := err.(*url.Error); is {
			return failed.Err
		}
		return err
	}
}

// A Transport is an [http.RoundTripper]. Requests and responses are held in memory.
type Transport struct {
	// Timeout and MaxBytes are those of [fetch.Request].
	Timeout  time.Duration
	MaxBytes int
}

// Client is a client that follows no redirects, as each host needs a grant.
func Client() *http.Client {
	return &http.Client{
		Transport: Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// RoundTrip sends a request and reads the answer.
func (transport Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := fetch.Request{
		Method:   request.Method,
		URL:      request.URL.String(),
		Header:   fetch.Header(request.Header),
		Timeout:  transport.Timeout,
		MaxBytes: transport.MaxBytes,
	}
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		request.Body.Close()
		if err != nil {
			return nil, err
		}
		asked.Body = body
	}
	answer, err := fetch.Do(&asked)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for name, values := range answer.Header {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	return &http.Response{
		Status:        strconv.Itoa(answer.Status) + " " + http.StatusText(answer.Status),
		StatusCode:    answer.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(answer.Body)),
		ContentLength: int64(len(answer.Body)),
		Request:       request,
	}, nil
}
