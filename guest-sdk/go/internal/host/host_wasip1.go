package host

import (
	handler "toolward/internal/export/export_toolward_driver_handler"
	"toolward/internal/wit/toolward_driver_log"
	"toolward/internal/wit/toolward_driver_progress"
	"toolward/internal/wit/toolward_driver_secrets"
	"toolward/internal/wit/toolward_driver_tools"
	wit "toolward/internal/wit/toolward_driver_types"
	types "toolward/internal/wit/types"
	_ "toolward/internal/wit/wit_exports" // what makes the program a component's module
)

// Component tells whether this is one.
const Component = true

func init() { handler.Handler = execute }

func execute(raw wit.Invocation) types.Result[wit.Outcome, wit.ToolError] {
	call := Invocation{
		ID:             raw.Id,
		Tool:           raw.Tool,
		ToolVersion:    raw.ToolVersion,
		Input:          raw.Input,
		Context:        raw.Context,
		Attempt:        raw.Attempt,
		RemainingMs:    raw.RemainingMs,
		IdempotencyKey: raw.IdempotencyKey,
	}
	if raw.Resume.IsSome() {
		resume := raw.Resume.Some()
		call.Resume = &Resumption{State: resume.State}
		for _, answer := range resume.Answers {
			read := Answer{Key: answer.Key, Status: answer.Reply.Tag()}
			if read.Status == wit.ReplyAccepted {
				read.JSON = answer.Reply.Accepted()
			}
			call.Resume.Answers = append(call.Resume.Answers, read)
		}
	}
	outcome, failure := Execute(call)
	outcome.makeValid()
	switch {
	case failure != nil:
		failure.makeValid()
		return types.Err[wit.Outcome, wit.ToolError](wit.ToolError{
			Code:         failure.Code,
			Message:      failure.Message,
			Retryable:    failure.Retryable,
			RetryAfterMs: number(failure.RetryAfterMs),
			Cause:        text(failure.Cause),
		})
	case outcome.Questions != nil:
		return types.Ok[wit.Outcome, wit.ToolError](wit.MakeOutcomeNeedsInput(questions(outcome.Questions)))
	default:
		output := wit.ToolOutput{Structured: outcome.Done.Structured}
		for _, block := range outcome.Done.Content {
			output.Content = append(output.Content, content(block))
		}
		return types.Ok[wit.Outcome, wit.ToolError](wit.MakeOutcomeDone(output))
	}
}

func questions(request *InputRequest) wit.InputRequest {
	raw := wit.InputRequest{State: request.State}
	for _, question := range request.Questions {
		ask := wit.MakeAskRoots()
		switch question.Kind {
		case Form:
			ask = wit.MakeAskForm(wit.Form{Message: question.Message, Schema: question.JSON})
		case Sample:
			ask = wit.MakeAskSample(question.JSON)
		}
		raw.Questions = append(raw.Questions, wit.Question{Key: question.Key, Ask: ask})
	}
	return raw
}

func content(block Block) wit.Block {
	media := wit.Media{Data: block.Data, MimeType: block.MIMEType}
	embedded := func(body wit.ResourceBody) wit.Content {
		return wit.MakeContentEmbedded(wit.EmbeddedResource{Uri: block.URI, MimeType: text(block.MIMEType), Body: body})
	}
	var raw wit.Block
	switch block.Kind {
	case Text:
		raw.Content = wit.MakeContentText(block.Text)
	case Image:
		raw.Content = wit.MakeContentImage(media)
	case Audio:
		raw.Content = wit.MakeContentAudio(media)
	case Link:
		size := types.None[uint64]()
		if block.Size > 0 {
			size = types.Some(block.Size)
		}
		raw.Content = wit.MakeContentResourceLink(wit.Link{
			Uri:         block.URI,
			Name:        block.Text,
			Title:       text(block.Title),
			Description: text(block.Description),
			MimeType:    text(block.MIMEType),
			Size:        size,
		})
	case EmbeddedText:
		raw.Content = embedded(wit.MakeResourceBodyText(block.Text))
	default:
		raw.Content = embedded(wit.MakeResourceBodyBlob(block.Data))
	}
	if len(block.Audience) > 0 || block.Priority != nil {
		annotations := wit.Annotations{Audience: block.Audience}
		if block.Priority != nil {
			annotations.Priority = types.Some(*block.Priority)
		}
		raw.Annotations = types.Some(annotations)
	}
	return raw
}

// Log writes a record; fields is a JSON object, or empty.
func Log(level Level, message, fields string) {
	toolward_driver_log.Write(uint8(level), Valid(message), text(Valid(fields)))
}

// Progress reports; a total of 0 and an empty message are none.
func Progress(done, total float64, message string) {
	update := toolward_driver_progress.Update{Done: done, Message: text(Valid(message))}
	if total != 0 {
		update.Total = types.Some(total)
	}
	toolward_driver_progress.Report(update)
}

// Placeholder is the text that stands for a secret.
func Placeholder(slug string) (string, SecretStatus) {
	return secret(toolward_driver_secrets.Placeholder(Valid(slug)))
}

// Reveal is a secret's value.
func Reveal(slug string) ([]byte, SecretStatus) {
	return secret(toolward_driver_secrets.Reveal(Valid(slug)))
}

// Store gives a secret a value.
func Store(slug string, value []byte) SecretStatus {
	_, status := secret(toolward_driver_secrets.Store(Valid(slug), value))
	return status
}

func secret[T any](result types.Result[T, uint8]) (T, SecretStatus) {
	if result.IsErr() {
		var none T
		// The ABI's numbers have no place for success.
		return none, SecretStatus(result.Err()) + SecretDenied
	}
	return result.Ok(), SecretFine
}

// Call calls another tool, and returns its structured output or an [*Error].
func Call(request Request) (string, error) {
	result := toolward_driver_tools.Call(toolward_driver_tools.Request{
		Tool:      Valid(request.Tool),
		Input:     Valid(request.Input),
		TimeoutMs: number(request.TimeoutMs),
	})
	if result.IsOk() {
		return result.Ok().Structured, nil
	}
	raw := result.Err()
	failure := &Error{Code: raw.Code, Message: raw.Message, Retryable: raw.Retryable, Cause: raw.Cause.SomeOr("")}
	if raw.RetryAfterMs.IsSome() {
		wait := raw.RetryAfterMs.Some()
		failure.RetryAfterMs = &wait
	}
	return "", failure
}

func text(text string) types.Option[string] {
	if text == "" {
		return types.None[string]()
	}
	return types.Some(text)
}

func number(value *uint64) types.Option[uint64] {
	if value == nil {
		return types.None[uint64]()
	}
	return types.Some(*value)
}
