package toolwardtest_test

import (
	"encoding/json"
	"errors"
	"testing"

	"toolward"
	"toolward/fetch"
	"toolward/keyvalue"
	"toolward/nethttp"
	"toolward/toolwardtest"
)

func code(err error) string {
	var failed *toolward.Error
	if errors.As(err, &failed) {
		return failed.Code
	}
	return ""
}

func TestWithoutGrantsAllIsDenied(t *testing.T) {
	_, revealed := toolward.Secret("token").Reveal()
	_, opened := keyvalue.Open("visits")
	_, called := toolward.CallTool[any]("other", nil)
	_, fetched := fetch.Get("https://example.org/?key=hidden")
	_, got := nethttp.Client().Get("https://example.org/")
	for name, err := range map[string]error{"reveal": revealed, "open": opened, "fetch": fetched, "nethttp": got} {
		if code(err) != "unauthorised" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if code(called) != "not_found" {
		t.Error(called)
	}
}

func TestGrantsStandInForTheHost(t *testing.T) {
	toolwardtest.Grant(t, toolwardtest.Grants{
		Secrets: map[string][]byte{"token": []byte("t")},
		Buckets: map[string]map[string][]byte{"visits": {}},
		Tools: map[string]func(json.RawMessage) (any, error){
			"echo": func(input json.RawMessage) (any, error) { return input, nil },
			"fail": func(json.RawMessage) (any, error) { return nil, toolward.Errorf("a:b", "c") },
		},
	})
	handler := func(call *toolward.Call[string]) (uint64, error) {
		bucket, err := keyvalue.Open("visits")
		if err != nil {
			return 0, err
		}
		return bucket.Increment(call.Input, 2)
	}
	for _, want := range []uint64{2, 4} {
		if sum, err := toolwardtest.Invoke(handler, "page"); err != nil || sum != want {
			t.Fatal(sum, err)
		}
	}
	if text, err := toolward.Secret("token").Placeholder(); err != nil || text != "placeholder:token" {
		t.Error(text, err)
	}
	if output, err := toolward.CallTool[int]("echo", 7); err != nil || output != 7 {
		t.Error(output, err)
	}
	if _, err := toolward.CallTool[int]("echo", "x"); code(err) != "upstream_error" {
		t.Error(err)
	}
	if _, err := toolward.CallTool[int]("fail", nil); code(err) != "a:b" {
		t.Error(err)
	}
}

func TestAnInputThatDoesNotFitIsInvalid(t *testing.T) {
	_, err := toolwardtest.Invoke(func(*toolward.Call[int]) (int, error) { return 0, nil }, "x")
	if code(err) != "input_invalid" {
		t.Fatal(err)
	}
}
