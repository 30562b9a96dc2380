package toolward

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"
)

func TestAttributesBecomeFields(t *testing.T) {
	var handler slog.Handler = logHandler{}
	handler = handler.WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("g").WithAttrs([]slog.Attr{slog.String("b", "x")})
	tree := handler.(logHandler).tree([]slog.Attr{
		slog.Duration("wait", 2*time.Second),
		slog.Any("error", errors.New("no")),
		slog.Group("", slog.Bool("inline", true)),
		slog.Group("empty"),
		slog.Any("shown", func() {}),
		{},
	})
	delete(tree["g"].(map[string]any), "shown")
	text, err := json.Marshal(tree)
	if want := `{"a":1,"g":{"b":"x","error":"no","inline":true,"wait":"2s"}}`; err != nil || string(text) != want {
		t.Fatalf("%s %v, want %s", text, err, want)
	}
}

func TestLevelsAreThoseOfTheHost(t *testing.T) {
	for given, want := range map[slog.Level]uint8{
		LevelTrace: 0, slog.LevelDebug: 1, slog.LevelInfo: 2, slog.LevelWarn: 3, slog.LevelError: 4, slog.LevelError + 4: 4,
	} {
		if got := level(given); uint8(got) != want {
			t.Errorf("%v: %v, want %v", given, got, want)
		}
	}
}
