//go:build !wasip1

// Package toolwardtest calls handlers without a host, for a driver's own tests.
// What it leaves out is the host: schemas, limits, policy.
package toolwardtest

import (
	"encoding/json"
	"testing"
	"time"

	"toolward"
	"toolward/internal/host"
)

// Invoke calls a handler with an input that goes through JSON, as it does in a
// component. The input is a value with a JSON form, or a [json.RawMessage].
func Invoke[I, O any](handler func(*toolward.Call[I]) (O, error), input any) (O, error) {
	text, err := json.Marshal(input)
	call := &toolward.Call[I]{
		Context:        json.RawMessage("{}"),
		ID:             "00000000-0000-7000-8000-000000000000",
		Tool:           "test",
		ToolVersion:    "0.0.0",
		Attempt:        1,
		Remaining:      30 * time.Second,
		IdempotencyKey: "test",
	}
	if err == nil {
		err = json.Unmarshal(text, &call.Input)
	}
	if err != nil {
		var none O
		return none, toolward.Errorf("input_invalid", "the driver's own type for the input does not fit it: %w", err)
	}
	return handler(call)
}

// Grants is what stands in for the host's grants. For HTTP a test gives the
// driver another [net/http.Client].
type Grants struct {
	Secrets map[string][]byte
	Tools   map[string]func(json.RawMessage) (any, error)
	Buckets map[string]map[string][]byte
}

// Grant holds the grants until the test ends. Without it, as without a host, all
// is denied. What is written stays in the maps.
func Grant(t testing.TB, grants Grants) {
	before := host.Granted
	t.Cleanup(func() { host.Granted = before })
	host.Granted = host.Grants(grants)
}
