//go:build !wasip1

package host

import "encoding/json"

// Component tells whether this is one.
const Component = false

// Grants is what stands in for the host's grants in a driver's own tests.
type Grants struct {
	Secrets map[string][]byte
	Tools   map[string]func(json.RawMessage) (any, error)
	Buckets map[string]map[string][]byte
}

// Granted are the grants of now.
var Granted Grants

// Log goes nowhere.
func Log(Level, string, string) {}

// Progress goes nowhere.
func Progress(float64, float64, string) {}

// Placeholder is the text that stands for a secret.
func Placeholder(slug string) (string, SecretStatus) {
	if _, granted := Granted.Secrets[slug]; !granted {
		return "", SecretDenied
	}
	return "placeholder:" + slug, SecretFine
}

// Reveal is a secret's value.
func Reveal(slug string) ([]byte, SecretStatus) {
	value, granted := Granted.Secrets[slug]
	if !granted {
		return nil, SecretDenied
	}
	return value, SecretFine
}

// Store gives a secret a value.
func Store(slug string, value []byte) SecretStatus {
	if _, granted := Granted.Secrets[slug]; !granted {
		return SecretDenied
	}
	Granted.Secrets[slug] = append([]byte(nil), value...)
	return SecretFine
}

// Call calls another tool, and returns its structured output.
func Call(request Request) (string, error) {
	tool, granted := Granted.Tools[request.Tool]
	if !granted {
		return "", &Error{Code: "not_found", Message: "there are no other tools outside a host"}
	}
	output, err := tool(json.RawMessage(request.Input))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(output)
	return string(text), err
}
