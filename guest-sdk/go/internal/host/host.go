// Package host is what a driver gets from its host, as plain Go values: the
// functions of host_wasip1.go in a component, those of host_other.go in tests.
package host

import "strings"

// An Invocation is one call, as the ABI carries it.
type Invocation struct {
	ID, Tool, ToolVersion, Input, Context string
	Attempt                               uint32
	RemainingMs                           uint64
	IdempotencyKey                        string
	Resume                                *Resumption
}

// A Resumption has the answers to the questions of the call before.
type Resumption struct {
	State   []byte
	Answers []Answer
}

// An Answer is what came back for one question.
type Answer struct {
	Key    string
	Status uint8
	JSON   string
}

// An Outcome is questions, or without them an output.
type Outcome struct {
	Done      Output
	Questions *InputRequest
}

// An Output is what a call that is done returns.
type Output struct {
	Structured string
	Content    []Block
}

// An InputRequest is what a call that needs answers returns.
type InputRequest struct {
	Questions []Question
	State     []byte
}

// An AskKind is what is asked for.
type AskKind uint8

// The kinds of questions.
const (
	Form AskKind = iota
	Sample
	Roots
)

// A Question is one question; JSON is a form's schema or a sample's parameters.
type Question struct {
	Key           string
	Kind          AskKind
	Message, JSON string
}

// A Kind is what a block holds.
type Kind uint8

// The kinds of blocks.
const (
	Text Kind = iota
	Image
	Audio
	Link
	EmbeddedText
	EmbeddedBytes
)

// A Block is one content block; Text is a link's name, too.
type Block struct {
	Kind                                    Kind
	Text, URI, MIMEType, Title, Description string
	Data                                    []byte
	Size                                    uint64
	Audience                                []uint8
	Priority                                *float64
}

// An Error is a failed call; an empty Cause is none.
type Error struct {
	Code, Message string
	Retryable     bool
	RetryAfterMs  *uint64
	Cause         string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// A Level is how much a log record matters.
type Level uint8

// The levels, in the order of the ABI.
const (
	Trace Level = iota
	Debug
	Info
	Warn
	Failure
)

// A SecretStatus is how an operation on a secret ended.
type SecretStatus uint8

// The statuses.
const (
	SecretFine SecretStatus = iota
	SecretDenied
	SecretMissing
	SecretFailed
)

// A Request is a call of another tool.
type Request struct {
	Tool, Input string
	TimeoutMs   *uint64
}

// Valid is text that UTF-8 can hold. The host ends the call where it gets other text.
func Valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// makeValid does that to every text on its way out.
func (outcome *Outcome) makeValid() {
	outcome.Done.Structured = Valid(outcome.Done.Structured)
	for i := range outcome.Done.Content {
		block := &outcome.Done.Content[i]
		for _, text := range []*string{&block.Text, &block.URI, &block.MIMEType, &block.Title, &block.Description} {
			*text = Valid(*text)
		}
	}
	if outcome.Questions == nil {
		return
	}
	for i := range outcome.Questions.Questions {
		question := &outcome.Questions.Questions[i]
		for _, text := range []*string{&question.Key, &question.Message, &question.JSON} {
			*text = Valid(*text)
		}
	}
}

func (e *Error) makeValid() {
	for _, text := range []*string{&e.Code, &e.Message, &e.Cause} {
		*text = Valid(*text)
	}
}

// Execute runs one call. Package toolward sets it.
var Execute func(Invocation) (Outcome, *Error)

// Shown is the error whose text a message shows. Package nethttp sets it: the
// text of its client's errors has the whole URL.
var Shown = func(err error) error { return err }
