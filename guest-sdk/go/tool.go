package toolward

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strings"

	"toolward/internal/host"
)

// Longest message of a panic; it may hold a whole input.
const maxMessage = 1024

var registered = map[string]func(host.Invocation) (host.Outcome, error){}

// Tool makes handler the one that carries out the contract with this id. Call it
// from init, once for each contract.
//
// The handler's input is what encoding/json reads into I. Its output is what
// encoding/json makes of O; a [Reply] adds content blocks. An error that is an
// [*Error] keeps its code; [Questions] ask before the call can finish. Every other
// error, and every panic, ends the call with the code internal.
func Tool[I, O any](id string, handler func(*Call[I]) (O, error)) {
	if _, twice := registered[id]; twice {
		panic("the tool " + id + " is defined twice")
	}
	registered[id] = func(raw host.Invocation) (host.Outcome, error) {
		return run(raw, handler)
	}
}

func init() { host.Execute = execute }

func execute(raw host.Invocation) (outcome host.Outcome, failure *host.Error) {
	defer func() {
		if cause := recover(); cause != nil {
			message := strings.ToValidUTF8(fmt.Sprint(cause), "�")
			if len(message) > maxMessage {
				message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
			}
			fmt.Fprintf(os.Stderr, "panic: %s\n%s", message, debug.Stack())
			failure = toHost(&Error{Code: "internal", Message: message})
		}
	}()
	handler, found := registered[raw.Tool]
	if !found {
		known := make([]string, 0, len(registered))
		for id := range registered {
			known = append(known, id)
		}
		sort.Strings(known)
		return outcome, toHost(Errorf("not_found", "this driver implements %s, not %s", strings.Join(known, ", "), raw.Tool))
	}
	outcome, err := handler(raw)
	if err != nil {
		return outcome, toHost(err)
	}
	return outcome, nil
}

// run carries one call from the ABI's values to a typed handler and back.
func run[I, O any](raw host.Invocation, handler func(*Call[I]) (O, error)) (host.Outcome, error) {
	var none host.Outcome
	call, err := read[I](raw)
	if err != nil {
		return none, err
	}
	output, err := handler(call)
	if err != nil {
		questions, asks := err.(*Questions)
		if !asks {
			return none, err
		}
		request, err := questions.request()
		return host.Outcome{Questions: request}, err
	}
	var value any = output
	var content []host.Block
	if reply, is := value.(replier); is {
		var blocks []Block
		value, blocks = reply.parts()
		for _, block := range blocks {
			raw, err := block.raw()
			if err != nil {
				return none, err
			}
			content = append(content, raw)
		}
	}
	structured, err := json.Marshal(value)
	if err != nil {
		return none, Errorf("internal", "the output has no JSON form: %v", err)
	}
	return host.Outcome{Done: host.Output{Structured: string(structured), Content: content}}, nil
}

func read[I any](raw host.Invocation) (*Call[I], error) {
	call := &Call[I]{
		ID:             raw.ID,
		Tool:           raw.Tool,
		ToolVersion:    raw.ToolVersion,
		Context:        json.RawMessage(raw.Context),
		Attempt:        int(raw.Attempt),
		Remaining:      milliseconds(raw.RemainingMs),
		IdempotencyKey: raw.IdempotencyKey,
	}
	if raw.Resume != nil {
		call.Resume = resumed(*raw.Resume)
	}
	if err := json.Unmarshal([]byte(raw.Input), &call.Input); err != nil {
		return nil, Errorf("input_invalid", "the driver's own type for the input does not fit it: %v", err)
	}
	return call, nil
}
