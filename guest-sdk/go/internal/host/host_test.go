package host

import (
	"reflect"
	"testing"
)

func TestNoTextThatGoesOutIsWithoutUTF8(t *testing.T) {
	outcome := Outcome{
		Done: Output{
			Structured: "\"\xff\"",
			Content:    []Block{{Text: "a\xff", URI: "b\xff", MIMEType: "c\xff", Title: "d\xff", Description: "e\xff", Data: []byte{0xff}}},
		},
		Questions: &InputRequest{Questions: []Question{{Key: "k\xff", Message: "m\xff", JSON: "\"\xff\""}}, State: []byte{0xff}},
	}
	outcome.makeValid()
	want := Outcome{
		Done: Output{
			Structured: "\"\uFFFD\"",
			Content:    []Block{{Text: "a\uFFFD", URI: "b\uFFFD", MIMEType: "c\uFFFD", Title: "d\uFFFD", Description: "e\uFFFD", Data: []byte{0xff}}},
		},
		Questions: &InputRequest{Questions: []Question{{Key: "k\uFFFD", Message: "m\uFFFD", JSON: "\"\uFFFD\""}}, State: []byte{0xff}},
	}
	if !reflect.DeepEqual(outcome, want) {
		t.Fatalf("%+v, want %+v", outcome, want)
	}
	failure := Error{Code: "a:\xff", Message: "m\xff", Cause: "\"\xff\""}
	failure.makeValid()
	if want := (Error{Code: "a:\uFFFD", Message: "m\uFFFD", Cause: "\"\uFFFD\""}); failure != want {
		t.Fatalf("%+v, want %+v", failure, want)
	}
}
