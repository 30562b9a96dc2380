package fetch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"toolward"
)

func failure(t *testing.T, err error) *toolward.Error {
	var failed *toolward.Error
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return failed
}

func TestAURLFallsIntoSchemeAuthorityAndPath(t *testing.T) {
	for url, want := range map[string]target{
		"https://a.example":               {true, "a.example", "/"},
		"HTTPS://A.example/":              {true, "A.example", "/"},
		"http://a.example:8080/b/c?d=e#f": {false, "a.example:8080", "/b/c?d=e"},
		"https://a.example?q=1":           {true, "a.example", "/?q=1"},
		"https://[::1]:1/x#y?z":           {true, "[::1]:1", "/x"},
	} {
		if got, err := split(url); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", url, got, err, want)
		}
	}
}

func TestWhatIsNoURLOfTheWebIsRefused(t *testing.T) {
	for _, url := range []string{
		"", "a.example/b", "ftp://a.example/", "https://", "https:///path", "https://user:word@a.example/",
		"https://a.example/b c", "https://a.example/\r\nHost: b", `https://a.example\@b.example/`,
		"https://a.example/" + strings.Repeat("x", maxURL),
	} {
		_, err := Get(url)
		if failed := failure(t, err); failed.Code != "input_invalid" || len(failed.Message) > 400 {
			t.Errorf("%s: %v", url, failed)
		}
	}
}

func TestADeniedRequestShowsNoQuery(t *testing.T) {
	_, err := Get("https://a.example/b?key=hidden")
	if failed := failure(t, err); failed.Code != "unauthorised" || strings.Contains(failed.Message, "hidden") {
		t.Fatal(failed)
	}
}

func TestAStatusOutsideTwoHundredIsAnError(t *testing.T) {
	if err := (&Response{Status: 204}).Success(); err != nil {
		t.Fatal(err)
	}
	busy := &Response{Status: 503, Header: Header{"Retry-After": {"3"}}, Body: []byte("later")}
	if failed := failure(t, busy.Success()); !failed.Retryable || failed.RetryAfter != 3*time.Second {
		t.Fatalf("%+v", failed)
	}
	if failed := failure(t, (&Response{Status: 404}).Success()); failed.Retryable {
		t.Fatalf("%+v", failed)
	}
}
