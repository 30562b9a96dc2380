package toolward

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"toolward/internal/host"
)

// Log writes records to the host: structured, capped per call (1000 records by
// default), redacted. In a component it is what [slog.Default] returns, too.
// Outside one its records go nowhere.
var Log = slog.New(logHandler{})

// LevelTrace is for following a single step. What lies below [slog.LevelDebug] is
// a trace to the host.
const LevelTrace = slog.LevelDebug - 4

type logHandler struct {
	// The attributes of WithAttrs and WithGroup, outermost first.
	scopes []scope
}

type scope struct {
	group string
	attrs []slog.Attr
}

func (logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (handler logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler.with(scope{attrs: attrs})
}

func (handler logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return handler
	}
	return handler.with(scope{group: name})
}

func (handler logHandler) with(added scope) logHandler {
	scopes := make([]scope, 0, len(handler.scopes)+1)
	return logHandler{append(append(scopes, handler.scopes...), added)}
}

func (handler logHandler) Handle(_ context.Context, record slog.Record) error {
	var attrs []slog.Attr
	record.Attrs(func(attr slog.Attr) bool {
		attrs = append(attrs, attr)
		return true
	})
	fields := ""
	if tree := handler.tree(attrs); len(tree) > 0 {
		text, err := json.Marshal(tree)
		if err != nil {
			return err
		}
		fields = string(text)
	}
	host.Log(level(record.Level), strings.ToValidUTF8(record.Message, "�"), fields)
	return nil
}

func (handler logHandler) tree(attrs []slog.Attr) map[string]any {
	tree := map[string]any{}
	put(tree, attrs)
	for i := len(handler.scopes) - 1; i >= 0; i-- {
		scope := handler.scopes[i]
		outer := map[string]any{}
		put(outer, scope.attrs)
		if scope.group == "" {
			for key, value := range tree {
				outer[key] = value
			}
		} else if len(tree) > 0 {
			outer[scope.group] = tree
		}
		tree = outer
	}
	return tree
}

func put(fields map[string]any, attrs []slog.Attr) {
	for _, attr := range attrs {
		value := attr.Value.Resolve()
		switch {
		case attr.Equal(slog.Attr{}):
		case value.Kind() == slog.KindGroup && attr.Key == "":
			put(fields, value.Group())
		case value.Kind() == slog.KindGroup:
			group := map[string]any{}
			put(group, value.Group())
			if len(group) > 0 {
				fields[attr.Key] = group
			}
		default:
			fields[attr.Key] = plain(value)
		}
	}
}

// plain is a value with a JSON form; one without is shown as fmt shows it.
func plain(value slog.Value) any {
	switch value.Kind() {
	case slog.KindDuration:
		return value.Duration().String()
	case slog.KindAny:
		if err, is := value.Any().(error); is {
			return err.Error()
		}
	}
	text, err := json.Marshal(value.Any())
	if err != nil {
		return fmt.Sprintf("%+v", value.Any())
	}
	return json.RawMessage(text)
}

func level(level slog.Level) host.Level {
	switch {
	case level < slog.LevelDebug:
		return host.Trace
	case level < slog.LevelInfo:
		return host.Debug
	case level < slog.LevelWarn:
		return host.Info
	case level < slog.LevelError:
		return host.Warn
	default:
		return host.Failure
	}
}
