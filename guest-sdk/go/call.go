package toolward

import (
	"encoding/json"
	"math"
	"time"
)

// A Call is one call of one tool. The instance that runs it serves this call
// only, so package variables start fresh each time.
type Call[I any] struct {
	// Input is valid against the contract's inputs. Defaults of the schema are
	// not put in.
	Input I
	// Context is set by operator or embedder and valid against the contract's
	// contextSchema; an empty object where there is none.
	Context json.RawMessage
	// ID is a UUIDv7, the same over retries and questions.
	ID string
	// Tool is the id of the contract that is called.
	Tool string
	// ToolVersion is the version of that contract (semver).
	ToolVersion string
	// Attempt counts from 1. It rises with retries, not with questions.
	Attempt int
	// Remaining is the time to the deadline, as measured when this call started.
	Remaining time.Duration
	// IdempotencyKey is the same for all attempts: send it to upstreams that can
	// tell a repeated request by it.
	IdempotencyKey string
	// Resume has the answers, where this call follows [Questions]; else it is nil.
	Resume *Resume
}

// milliseconds gives the longest duration for what is longer.
func milliseconds(count uint64) time.Duration {
	return time.Duration(min(count, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}
