package toolward

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"toolward/internal/host"
)

type greeting struct {
	Name  string `json:"name"`
	Times int    `json:"times"`
}

func call(id, input string) (host.Outcome, *host.Error) {
	return execute(host.Invocation{Tool: id, Input: input, Context: "{}", Attempt: 1, RemainingMs: 1500})
}

func once(t *testing.T, id string) string {
	t.Cleanup(func() { delete(registered, id) })
	return id
}

func TestInputAndOutputGoThroughJSON(t *testing.T) {
	Tool(once(t, "a"), func(call *Call[greeting]) (map[string]any, error) {
		return map[string]any{"said": strings.Repeat(call.Input.Name, call.Input.Times), "left": call.Remaining.String()}, nil
	})
	outcome, failure := call("a", `{"name":"Ada","times":2}`)
	if failure != nil || outcome.Done.Structured != `{"left":"1.5s","said":"AdaAda"}` {
		t.Fatal(outcome, failure)
	}
}

func TestAnInputThatDoesNotFitTheTypeIsNoPanic(t *testing.T) {
	Tool(once(t, "a"), func(*Call[greeting]) (any, error) { return nil, nil })
	_, failure := call("a", `{"times":"two"}`)
	if failure == nil || failure.Code != "input_invalid" {
		t.Fatal(failure)
	}
}

func TestEveryErrorHasACode(t *testing.T) {
	behind := errors.New("no route")
	for _, test := range []struct {
		err  error
		want host.Error
	}{
		{errors.New("plain"), host.Error{Code: "internal", Message: "plain"}},
		{Errorf("not_found", "no %s", "thing"), host.Error{Code: "not_found", Message: "no thing"}},
		{Errorf("upstream_error", "sent: %w", behind), host.Error{Code: "upstream_error", Message: "sent: no route", Cause: `"no route"`}},
		{fmt.Errorf("while reading: %w", &Error{Code: "a:b", Message: "c"}), host.Error{Code: "a:b", Message: "while reading: a:b: c"}},
		{&Error{Code: "a:b", Message: "c", Cause: map[string]int{"d": 1}}, host.Error{Code: "a:b", Message: "c", Cause: `{"d":1}`}},
		{&Error{Code: "a:b", Message: "bad \xff", Cause: func() {}}, host.Error{Code: "a:b", Message: "bad �"}},
	} {
		Tool(once(t, "a"), func(*Call[any]) (any, error) { return nil, test.err })
		_, failure := call("a", "null")
		if failure == nil || *failure != test.want {
			t.Errorf("%v: %+v, want %+v", test.err, failure, test.want)
		}
		delete(registered, "a")
	}
}

func TestAWaitMakesAnErrorRetryable(t *testing.T) {
	raw := toHost(&Error{Code: "rate_limited", RetryAfter: 2 * time.Second})
	if !raw.Retryable || *raw.RetryAfterMs != 2000 {
		t.Fatalf("%+v", raw)
	}
	if back := fromHost(raw); back.RetryAfter != 2*time.Second {
		t.Fatalf("%+v", back)
	}
}

func TestAPanicIsAnErrorWithItsText(t *testing.T) {
	Tool(once(t, "a"), func(*Call[any]) (any, error) { panic("boom") })
	Tool(once(t, "b"), func(*Call[any]) (any, error) {
		var none map[string]int
		none["a"] = 1
		return nil, nil
	})
	Tool(once(t, "c"), func(*Call[any]) (any, error) { panic(strings.Repeat("é", maxMessage)) })
	for id, text := range map[string]string{"a": "boom", "b": "assignment to entry in nil map", "c": "é…"} {
		_, failure := call(id, "null")
		if failure == nil || failure.Code != "internal" || !strings.HasSuffix(failure.Message, text) || len(failure.Message) > maxMessage+3 {
			t.Errorf("%s: %+v", id, failure)
		}
	}
}

func TestAnUnknownToolIsNotFound(t *testing.T) {
	_, failure := call("nobody", "null")
	if failure == nil || failure.Code != "not_found" {
		t.Fatal(failure)
	}
}

func TestAReplyHasBlocksBesideTheValue(t *testing.T) {
	Tool(once(t, "a"), func(*Call[any]) (Reply[int], error) {
		link := Link("https://example.org/", "example")
		link.Audience = []Role{Assistant}
		return Reply[int]{7, []Block{Text("seven"), link}}, nil
	})
	outcome, failure := call("a", "null")
	if failure != nil || outcome.Done.Structured != "7" || len(outcome.Done.Content) != 2 {
		t.Fatal(outcome, failure)
	}
	if block := outcome.Done.Content[1]; block.Kind != host.Link || block.Text != "example" || block.Audience[0] != 1 {
		t.Fatalf("%+v", block)
	}
}

func TestQuestionsAreAskedAndTheAnswersCome(t *testing.T) {
	Tool(once(t, "a"), func(call *Call[any]) (string, error) {
		if call.Resume == nil {
			return "", Ask().Form("who", "Who?", json.RawMessage(`{"type":"object"}`)).State(1)
		}
		answer, err := call.Resume.Answer("who")
		if err != nil {
			return "", err
		}
		var state int
		err = call.Resume.State(&state)
		return fmt.Sprint(answer.Status, string(answer.Value), state), err
	})
	outcome, failure := call("a", "null")
	if failure != nil || outcome.Questions.Questions[0].JSON != `{"type":"object"}` || string(outcome.Questions.State) != "1" {
		t.Fatal(outcome, failure)
	}
	for status, want := range map[uint8]string{0: `"accepted{}1"`, 1: `"declined1"`} {
		outcome, failure = execute(host.Invocation{Tool: "a", Input: "null", Resume: &host.Resumption{
			State:   []byte("1"),
			Answers: []host.Answer{{Key: "who", Status: status, JSON: "{}"}},
		}})
		if failure != nil || outcome.Done.Structured != want {
			t.Fatal(outcome, failure)
		}
	}
}

func TestNoQuestionsAreAnError(t *testing.T) {
	for _, questions := range []*Questions{Ask(), Ask().Form("a", "b", func() {})} {
		Tool(once(t, "a"), func(*Call[any]) (any, error) { return nil, questions })
		if _, failure := call("a", "null"); failure == nil || failure.Code != "internal" {
			t.Fatal(failure)
		}
		delete(registered, "a")
	}
}

func TestAnUnknownRoleIsAnError(t *testing.T) {
	Tool(once(t, "a"), func(*Call[any]) (Reply[int], error) {
		block := Text("seven")
		block.Audience = []Role{User, 7}
		return Reply[int]{7, []Block{block}}, nil
	})
	if _, failure := call("a", "null"); failure == nil || failure.Code != "internal" || !strings.Contains(failure.Message, "role 7") {
		t.Fatal(failure)
	}
}
