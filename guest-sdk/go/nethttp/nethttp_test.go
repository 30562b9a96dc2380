package nethttp

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"toolward/internal/host"
)

func TestTheClientsURLIsNotInTheMessage(t *testing.T) {
	_, err := Client().Get("https://a.example/b?key=hidden")
	var failed *url.Error
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if shown := host.Shown(err).Error(); strings.Contains(shown, "hidden") || !strings.Contains(shown, "unauthorised") {
		t.Fatal(shown)
	}
}
