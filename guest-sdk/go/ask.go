package toolward

import (
	"encoding/json"

	"toolward/internal/host"
)

// Questions go to whoever stands behind the caller. A handler returns them as its
// error; the driver is then called anew, in a fresh instance, with the answers in
// [Call.Resume].
//
//	if call.Resume == nil {
//		return Output{}, toolward.Ask().Form("who", "Whom shall I greet?", schema)
//	}
//	answer, err := call.Resume.Answer("who")
//
// Each kind is a capability that the contract declares (requires.user) and the
// operator grants. Keys are unique.
type Questions struct {
	questions []host.Question
	state     []byte
	problem   error
}

// Ask starts a list of questions; the host wants at least one.
func Ask() *Questions { return &Questions{} }

// Form asks the person to fill in a form. The schema is a value whose JSON is a
// flat JSON Schema object with properties that are strings, numbers, booleans or
// enumerations; a [json.RawMessage] is one.
func (q *Questions) Form(key, message string, schema any) *Questions {
	return q.add(host.Question{Key: key, Kind: host.Form, Message: message}, schema)
}

// Sample asks the caller's model. The parameters are those of MCP's
// sampling/createMessage.
func (q *Questions) Sample(key string, parameters any) *Questions {
	return q.add(host.Question{Key: key, Kind: host.Sample}, parameters)
}

// Roots asks for the caller's workspace roots.
func (q *Questions) Roots(key string) *Questions {
	q.questions = append(q.questions, host.Question{Key: key, Kind: host.Roots})
	return q
}

// State sets what [Resume.State] gives back, at most 64 KiB of JSON. The caller
// can read it, and can't change it.
func (q *Questions) State(state any) *Questions {
	q.state = q.marshal(state)
	return q
}

// Error says that a handler that returns questions has not failed.
func (q *Questions) Error() string { return "answers are needed first" }

func (q *Questions) add(question host.Question, value any) *Questions {
	question.JSON = string(q.marshal(value))
	q.questions = append(q.questions, question)
	return q
}

func (q *Questions) marshal(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil && q.problem == nil {
		q.problem = Errorf("internal", "the question has no JSON form: %v", err)
	}
	return text
}

func (q *Questions) request() (*host.InputRequest, error) {
	if q.problem != nil {
		return nil, q.problem
	}
	if len(q.questions) == 0 {
		return nil, Errorf("internal", "the driver asks, but asks nothing")
	}
	return &host.InputRequest{Questions: q.questions, State: q.state}, nil
}

// A Status is what came back for a question.
type Status uint8

const (
	// Accepted is an answer, valid against the question's schema.
	Accepted Status = iota
	// Declined means that the person said no.
	Declined
	// Cancelled means that the person went away without saying either.
	Cancelled
)

func (status Status) String() string {
	return [...]string{"accepted", "declined", "cancelled"}[min(status, Cancelled)]
}

// An Answer is what came back for one question.
type Answer struct {
	Status Status
	// Value is the answer's JSON, nil unless it was accepted.
	Value json.RawMessage
}

// Decode reads the answer's value as encoding/json does.
func (answer Answer) Decode(value any) error { return json.Unmarshal(answer.Value, value) }

// A Resume has the answers to the questions of the call before, and its state.
type Resume struct {
	state   []byte
	answers map[string]Answer
}

// NewResume makes the answers that a driver's own test gives to a handler.
func NewResume(state any, answers map[string]Answer) (*Resume, error) {
	text, err := json.Marshal(state)
	return &Resume{text, answers}, err
}

// State reads the state that was given with the questions.
func (resume *Resume) State(state any) error { return json.Unmarshal(resume.state, state) }

// Answer is the answer to the question with this key.
func (resume *Resume) Answer(key string) (Answer, error) {
	answer, found := resume.answers[key]
	if !found {
		return answer, Errorf("internal", "no question with the key %s was asked", key)
	}
	return answer, nil
}

func resumed(raw host.Resumption) *Resume {
	resume := &Resume{state: raw.State, answers: map[string]Answer{}}
	for _, answer := range raw.Answers {
		read := Answer{Status: Status(answer.Status)}
		if read.Status == Accepted {
			read.Value = json.RawMessage(answer.JSON)
		}
		resume.answers[answer.Key] = read
	}
	return resume
}
