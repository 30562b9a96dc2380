package toolward

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"toolward/internal/host"
)

// An Error is a failed call.
type Error struct {
	// Code is one of AIP-14's (input_invalid, not_found, rate_limited,
	// upstream_error, …) or the tool's own, as domain:code. The host marks it as
	// the driver's, so it can't pass for one of the host.
	Code string
	// Message is for people and models.
	Message string
	// Retryable says that the same call may succeed later. The contract's retry
	// decides whether it is made again.
	Retryable bool
	// RetryAfter is how long to wait at least before that; 0 leaves it to the host.
	RetryAfter time.Duration
	// Cause is what lies behind the error: a value with a JSON form, or an error.
	Cause any
}

// Errorf returns an [*Error] with this code, and a message as by [fmt.Errorf]: an
// error behind %w becomes the cause.
func Errorf(code, format string, arguments ...any) *Error {
	wrapped := fmt.Errorf(format, arguments...)
	failed := &Error{Code: code, Message: wrapped.Error()}
	if cause := errors.Unwrap(wrapped); cause != nil {
		failed.Cause = cause
	}
	return failed
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Unwrap returns the cause where it is an error.
func (e *Error) Unwrap() error {
	cause, _ := e.Cause.(error)
	return cause
}

// toHost finds the [*Error] in a chain, or makes one.
func toHost(err error) *host.Error {
	err = host.Shown(err)
	var failed *Error
	message := err.Error()
	if !errors.As(err, &failed) {
		failed = &Error{Code: "internal"}
	} else if err == error(failed) {
		message = failed.Message
	}
	raw := &host.Error{
		Code:      strings.ToValidUTF8(failed.Code, "�"),
		Message:   strings.ToValidUTF8(message, "�"),
		Retryable: failed.Retryable || failed.RetryAfter > 0,
	}
	if failed.RetryAfter > 0 {
		wait := uint64(failed.RetryAfter.Milliseconds())
		raw.RetryAfterMs = &wait
	}
	var cause any = failed.Cause
	if behind, is := cause.(error); is {
		cause = behind.Error()
	}
	if cause != nil {
		// A cause without a JSON form is left out.
		if text, err := json.Marshal(cause); err == nil {
			raw.Cause = string(text)
		}
	}
	return raw
}

func fromHost(raw *host.Error) *Error {
	failed := &Error{Code: raw.Code, Message: raw.Message, Retryable: raw.Retryable}
	if raw.RetryAfterMs != nil {
		failed.RetryAfter = milliseconds(*raw.RetryAfterMs)
	}
	if raw.Cause != "" {
		failed.Cause = json.RawMessage(raw.Cause)
	}
	return failed
}
