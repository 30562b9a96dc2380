// The conformance tools in Go, but for the one that needs the network: see http/.
// `../README.md` says what each of them answers.
package main

import (
	"bytes"
	crypto "crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand"
	"os"

	"toolward"
	"toolward/keyvalue"
)

type probeInput struct {
	Op    string `json:"op"`
	Name  string `json:"name"`
	Depth int    `json:"depth"`
}

type result struct {
	Result any `json:"result"`
}

var operations = map[string]func(probeInput) (any, error){
	"greet": func(input probeInput) (any, error) {
		return "Hello, " + input.Name + "!", nil
	},
	"log": func(probeInput) (any, error) {
		slog.Info("from the guest", "n", 1)
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		return "logged", nil
	},
	"progress": func(probeInput) (any, error) {
		for step := 1.0; step <= 3; step++ {
			toolward.Progress(step, 3, fmt.Sprintf("step %v", step))
		}
		return "reported", nil
	},
	"error": func(probeInput) (any, error) {
		return nil, &toolward.Error{
			Code:      "probe:own",
			Message:   "asked for",
			Retryable: true,
			Cause:     map[string]string{"why": "asked"},
		}
	},
	"throw": func(probeInput) (any, error) {
		panic("uncaught boom")
	},
	"random": func(probeInput) (any, error) {
		number := make([]byte, 16)
		_, err := crypto.Read(number)
		return map[string]any{"number": rand.Float64(), "bytes": hex.EncodeToString(number)}, err
	},
	"memory": func(probeInput) (any, error) {
		var pieces [][]byte
		for range 128 {
			pieces = append(pieces, bytes.Repeat([]byte{1}, 1<<20))
		}
		return len(pieces), nil
	},
	"loop": func(probeInput) (any, error) {
		for {
		}
	},
	"json": func(input probeInput) (any, error) {
		value := []any{}
		for range input.Depth - 1 {
			value = []any{value}
		}
		return value, nil
	},
	"recurse": func(probeInput) (any, error) {
		return deeper(0), nil
	},
}

func deeper(depth int) int {
	return 1 + deeper(depth+1)
}

func probe(call *toolward.Call[probeInput]) (result, error) {
	value, err := operations[call.Input.Op](call.Input)
	return result{value}, err
}

type textInput struct {
	Text string `json:"text"`
}

func echo(call *toolward.Call[textInput]) (result, error) {
	return result{call.Input.Text}, nil
}

type keyInput struct {
	Key string `json:"key"`
}

func count(call *toolward.Call[keyInput]) (result, error) {
	bucket, err := keyvalue.Open("conformance")
	if err != nil {
		return result{}, err
	}
	sum, err := bucket.Increment(call.Input.Key, 1)
	return result{sum}, err
}

func secret(*toolward.Call[struct{}]) (result, error) {
	placeholder, err := toolward.Secret("conformance-token").Placeholder()
	if err != nil {
		return result{}, err
	}
	return result{map[string]any{"start": placeholder[:4], "length": len(placeholder)}}, nil
}

func tool(call *toolward.Call[textInput]) (result, error) {
	output, err := toolward.CallTool[any]("conformance.echo", call.Input)
	return result{output}, err
}

type greeting struct {
	Greeting string `json:"greeting"`
}

func ask(call *toolward.Call[struct{}]) (result, error) {
	if call.Resume == nil {
		schema := map[string]any{
			"type":       "object",
			"properties": map[string]any{"name": map[string]any{"type": "string"}},
			"required":   []string{"name"},
		}
		return result{}, toolward.Ask().Form("who", "Whom shall I greet?", schema).State(greeting{"Hello"})
	}
	answer, err := call.Resume.Answer("who")
	if err != nil {
		return result{}, err
	}
	if answer.Status != toolward.Accepted {
		return result{}, toolward.Errorf("probe:nobody", "%s", answer.Status)
	}
	var state greeting
	if err := call.Resume.State(&state); err != nil {
		return result{}, err
	}
	var form struct{ Name string }
	if err := answer.Decode(&form); err != nil {
		return result{}, err
	}
	return result{state.Greeting + ", " + form.Name + "!"}, nil
}

func files(*toolward.Call[struct{}]) (result, error) {
	text, err := os.ReadFile("/data/in.txt")
	if err != nil {
		return result{}, err
	}
	text = bytes.ToUpper(text)
	return result{len(text)}, os.WriteFile("/data/out.txt", text, 0o600)
}

func init() {
	toolward.Tool("conformance.probe", probe)
	toolward.Tool("conformance.echo", echo)
	toolward.Tool("conformance.keyvalue", count)
	toolward.Tool("conformance.secret", secret)
	toolward.Tool("conformance.tool", tool)
	toolward.Tool("conformance.ask", ask)
	toolward.Tool("conformance.files", files)
}

func main() {}
