package fetch

import (
	"slices"
	"strconv"

	"toolward"
	"toolward/internal/host"
	"toolward/internal/wit/types"
	"toolward/internal/wit/wasi_http_outgoing_handler"
	wit "toolward/internal/wit/wasi_http_types"
	streams "toolward/internal/wit/wasi_io_streams"
)

// Bytes that one read asks for.
const chunk = 64 << 10

// send sends, and reads one byte more than the request takes: that shows that there
// is more. What is made of another handle is dropped before it, as the host demands.
func send(request *Request, target target) (*Response, error) {
	fields, err := fields(request)
	if err != nil {
		return nil, err
	}
	outgoing := wit.MakeOutgoingRequest(fields)
	scheme := wit.MakeSchemeHttp()
	if target.secure {
		scheme = wit.MakeSchemeHttps()
	}
	for _, part := range []struct {
		name   string
		result wit_types.Result[wit_types.Unit, wit_types.Unit]
	}{
		{"method", outgoing.SetMethod(method(request.Method))},
		{"scheme", outgoing.SetScheme(wit_types.Some(scheme))},
		{"host", outgoing.SetAuthority(wit_types.Some(host.Valid(target.authority)))},
		{"path", outgoing.SetPathWithQuery(wit_types.Some(host.Valid(target.path)))},
	} {
		if part.result.IsErr() {
			outgoing.Drop()
			return nil, toolward.Errorf("input_invalid", "the host takes no such %s: %s", part.name, request.shown())
		}
	}
	body := outgoing.Body().Ok()
	handled := wasi_http_outgoing_handler.Handle(outgoing, options(request))
	if handled.IsErr() {
		body.Drop()
		return nil, failed(request, handled.Err())
	}
	pending := handled.Ok()
	defer pending.Drop()
	unsent := write(body, request.Body)
	ready := pending.Subscribe()
	ready.Block()
	ready.Drop()
	answered := pending.Get()
	if answered.IsNone() || answered.Some().IsErr() {
		return nil, toolward.Errorf("internal", "the host gave no answer")
	}
	// Where both failed, the answer's reason is the better one.
	answer := answered.Some().Ok()
	if answer.IsErr() {
		return nil, failed(request, answer.Err())
	}
	incoming := answer.Ok()
	defer incoming.Drop()
	if unsent != nil {
		return nil, failed(request, *unsent)
	}
	return read(request, incoming)
}

func fields(request *Request) (*wit.Fields, error) {
	fields := wit.MakeFields()
	add := func(name, value string) error {
		result := fields.Append(host.Valid(name), []byte(value))
		switch {
		case result.IsOk():
			return nil
		case result.Err().Tag() == wit.HeaderErrorForbidden:
			return toolward.Errorf("unauthorised", "the host takes no header %s from a driver", name)
		default:
			return toolward.Errorf("input_invalid", "the header %s has a name or value that HTTP does not allow", name)
		}
	}
	names := make([]string, 0, len(request.Header))
	for name := range request.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range request.Header[name] {
			if err := add(name, value); err != nil {
				fields.Drop()
				return nil, err
			}
		}
	}
	if len(request.Body) > 0 && request.Header.Get("content-length") == "" {
		if err := add("content-length", strconv.Itoa(len(request.Body))); err != nil {
			fields.Drop()
			return nil, err
		}
	}
	return fields, nil
}

func method(name string) wit.Method {
	switch name {
	case "GET":
		return wit.MakeMethodGet()
	case "HEAD":
		return wit.MakeMethodHead()
	case "OPTIONS":
		return wit.MakeMethodOptions()
	case "POST":
		return wit.MakeMethodPost()
	case "PUT":
		return wit.MakeMethodPut()
	case "PATCH":
		return wit.MakeMethodPatch()
	case "DELETE":
		return wit.MakeMethodDelete()
	default:
		return wit.MakeMethodOther(host.Valid(name))
	}
}

func options(request *Request) wit_types.Option[*wit.RequestOptions] {
	if request.Timeout <= 0 {
		return wit_types.None[*wit.RequestOptions]()
	}
	wait := wit_types.Some(uint64(request.Timeout.Nanoseconds()))
	options := wit.MakeRequestOptions()
	// Not each host knows each of them; its own limits hold then.
	options.SetConnectTimeout(wait)
	options.SetFirstByteTimeout(wait)
	options.SetBetweenBytesTimeout(wait)
	return wit_types.Some(options)
}

// write writes the body; it returns the reason where that fails.
func write(body *wit.OutgoingBody, data []byte) *wit.ErrorCode {
	opened := body.Write()
	if opened.IsErr() {
		body.Drop()
		code := wit.MakeErrorCodeInternalError(wit_types.None[string]())
		return &code
	}
	stream := opened.Ok()
	failure := writeAll(stream, data)
	stream.Drop()
	if failure != nil {
		body.Drop()
		code := codeOf(*failure)
		return &code
	}
	finished := wit.OutgoingBodyFinish(body, wit_types.None[*wit.Fields]())
	if finished.IsErr() {
		code := finished.Err()
		return &code
	}
	return nil
}

func writeAll(stream *streams.OutputStream, data []byte) *streams.StreamError {
	for len(data) > 0 {
		ready := stream.Subscribe()
		ready.Block()
		ready.Drop()
		room := stream.CheckWrite()
		if room.IsErr() {
			failure := room.Err()
			return &failure
		}
		now := data[:min(uint64(len(data)), room.Ok())]
		if written := stream.Write(now); written.IsErr() {
			failure := written.Err()
			return &failure
		}
		data = data[len(now):]
	}
	if flushed := stream.BlockingFlush(); flushed.IsErr() {
		failure := flushed.Err()
		return &failure
	}
	return nil
}

func read(request *Request, incoming *wit.IncomingResponse) (*Response, error) {
	response := &Response{Status: int(incoming.Status()), Header: Header{}}
	headers := incoming.Headers()
	for _, entry := range headers.Entries() {
		response.Header[entry.F0] = append(response.Header[entry.F0], string(entry.F1))
	}
	headers.Drop()
	consumed := incoming.Consume()
	if consumed.IsErr() {
		return nil, toolward.Errorf("internal", "the host gave no body")
	}
	body := consumed.Ok()
	defer body.Drop()
	opened := body.Stream()
	if opened.IsErr() {
		return nil, toolward.Errorf("internal", "the host gave no body")
	}
	stream := opened.Ok()
	defer stream.Drop()
	for len(response.Body) <= request.MaxBytes {
		piece := stream.BlockingRead(uint64(min(chunk, request.MaxBytes+1-len(response.Body))))
		if piece.IsOk() {
			response.Body = append(response.Body, piece.Ok()...)
			continue
		}
		if failure := piece.Err(); failure.Tag() != streams.StreamErrorClosed {
			return nil, failed(request, codeOf(failure))
		}
		break
	}
	return response, nil
}

// codeOf is the HTTP error behind a stream's.
func codeOf(failure streams.StreamError) wit.ErrorCode {
	if failure.Tag() == streams.StreamErrorClosed {
		return wit.MakeErrorCodeConnectionTerminated()
	}
	behind := failure.LastOperationFailed()
	defer behind.Drop()
	if code := wit.HttpErrorCode(behind); code.IsSome() {
		return code.Some()
	}
	return wit.MakeErrorCodeInternalError(wit_types.Some(behind.ToDebugString()))
}

// failed is the connection's own error, in the caller's words.
func failed(request *Request, code wit.ErrorCode) error {
	upstream := func(problem string, retryable bool) *toolward.Error {
		failed := toolward.Errorf("upstream_error", "%s: %s", request.shown(), problem)
		failed.Retryable = retryable
		return failed
	}
	var failed *toolward.Error
	switch code.Tag() {
	case wit.ErrorCodeHttpRequestDenied, wit.ErrorCodeDestinationIpProhibited:
		failed = request.denied()
	case wit.ErrorCodeConnectionLimitReached:
		failed = toolward.Errorf("rate_limited", "%s: too many requests at once", request.shown())
		failed.Retryable = true
	case wit.ErrorCodeDnsTimeout, wit.ErrorCodeConnectionTimeout, wit.ErrorCodeConnectionReadTimeout,
		wit.ErrorCodeConnectionWriteTimeout, wit.ErrorCodeHttpResponseTimeout:
		failed = upstream("no answer in time", true)
	case wit.ErrorCodeDnsError, wit.ErrorCodeDestinationNotFound:
		failed = upstream("the host's name has no address", true)
	case wit.ErrorCodeDestinationUnavailable, wit.ErrorCodeDestinationIpUnroutable, wit.ErrorCodeConnectionRefused,
		wit.ErrorCodeConnectionTerminated, wit.ErrorCodeHttpResponseIncomplete:
		failed = upstream("no connection, or it broke off", true)
	case wit.ErrorCodeTlsProtocolError, wit.ErrorCodeTlsCertificateError, wit.ErrorCodeTlsAlertReceived:
		failed = upstream("no secure connection", false)
	case wit.ErrorCodeHttpRequestBodySize:
		failed = toolward.Errorf("http:body_too_large", "the body of %s is longer than the host sends", request.shown())
	case wit.ErrorCodeHttpResponseBodySize:
		failed = toolward.Errorf("http:body_too_large", "the answer to %s is longer than the host takes", request.shown())
	case wit.ErrorCodeInternalError:
		failed = upstream(code.InternalError().SomeOr("the request failed"), false)
	default:
		failed = upstream("the request failed", false)
	}
	failed.Cause = map[string]any{"wasi:http/error-code": code.Tag()}
	return failed
}
