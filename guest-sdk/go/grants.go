package toolward

import (
	"encoding/json"
	"strings"
	"time"

	"toolward/internal/host"
)

// Progress reports that done of total is reached; a total of 0 isn't known. The
// message is a line for people, or empty. done must rise from report to report
// within one call. A report never blocks; too many are dropped.
func Progress(done, total float64, message string) {
	host.Progress(done, total, strings.ToValidUTF8(message, "�"))
}

// A Secret is the name of a secret that the contract names in requires.secrets
// and the operator grants. A driver normally never sees the value: it sends a
// placeholder, which the host replaces on the way to the hosts tied to the secret.
//
// Its methods fail with the code unauthorised where the secret isn't declared or
// granted, auth_required where the operator has no value for it, and
// upstream_error where the store fails.
type Secret string

// Placeholder is text for an outgoing header, which the host replaces by the
// secret. It is good for this call only, and useless elsewhere.
func (secret Secret) Placeholder() (string, error) {
	text, status := host.Placeholder(string(secret))
	return text, secret.failed(status)
}

// Reveal returns the secret itself, which takes a policy line of its own.
func (secret Secret) Reveal() ([]byte, error) {
	value, status := host.Reveal(string(secret))
	return value, secret.failed(status)
}

// Store stores a new value, where the contract declares mutates: secret:NAME.
func (secret Secret) Store(value []byte) error {
	return secret.failed(host.Store(string(secret), value))
}

func (secret Secret) failed(status host.SecretStatus) error {
	switch status {
	case host.SecretFine:
		return nil
	case host.SecretDenied:
		return Errorf("unauthorised", "the secret %s is not declared, or not granted for this", string(secret))
	case host.SecretMissing:
		return Errorf("auth_required", "the secret %s is granted, but has no value", string(secret))
	default:
		return Errorf("upstream_error", "the store of the secret %s failed", string(secret))
	}
}

// A CallOption changes how [CallTool] calls.
type CallOption func(*host.Request)

// Timeout lowers the deadline for a call; it can't be raised.
func Timeout(timeout time.Duration) CallOption {
	return func(request *host.Request) {
		limit := uint64(max(timeout.Milliseconds(), 0))
		request.TimeoutMs = &limit
	}
}

// CallTool calls another tool, named in the contract's requires.tools and granted,
// through the whole pipeline and with what is left of this call's limits. It fails
// as the callee does, with the code unauthorised without a grant, and with
// upstream_error where the output is not the JSON of an O.
//
//	stats, err := toolward.CallTool[Stats]("text.stats", map[string]string{"text": text})
func CallTool[O any](id string, input any, options ...CallOption) (O, error) {
	var output O
	text, err := json.Marshal(input)
	if err != nil {
		return output, Errorf("internal", "the input of %s has no JSON form: %w", id, err)
	}
	request := host.Request{Tool: id, Input: string(text)}
	for _, option := range options {
		option(&request)
	}
	structured, err := host.Call(request)
	if failure, is := err.(*host.Error); is {
		return output, fromHost(failure)
	}
	if err != nil {
		return output, err
	}
	if err := json.Unmarshal([]byte(structured), &output); err != nil {
		return output, Errorf("upstream_error", "the output of %s is not what was expected: %w", id, err)
	}
	return output, nil
}
