// Package toolward is what the author of a Toolward driver in Go uses.
//
// A driver carries out one or more tool contracts as a WebAssembly component of
// a toolward:driver@0.1.0 world. This package turns that world into typed Go:
// input and output are types that encoding/json knows, and errors are errors. It
// grants nothing; the host does.
//
//	package main
//
//	import (
//		"strings"
//
//		"toolward"
//	)
//
//	type Input struct{ Text string }
//
//	type Output struct {
//		Words int `json:"words"`
//	}
//
//	func count(call *toolward.Call[Input]) (Output, error) {
//		words := strings.Fields(call.Input.Text)
//		if len(words) == 0 {
//			return Output{}, toolward.Errorf("text:empty", "there is nothing to count")
//		}
//		return Output{len(words)}, nil
//	}
//
//	func init() { toolward.Tool("text.count", count) }
//
//	func main() {}
//
// Outside a component, in a driver's own tests, logs and progress go nowhere, and
// everything that needs a grant is denied but for what package toolwardtest
// grants.
//
//	for                                    see
//	what a call carries                    Call
//	errors, codes, retries                 Error
//	text, images, links beside the JSON    Reply, Block
//	asking the person behind the caller    Questions, Resume
//	log records, progress                  Log, Progress
//	secrets, other tools (need a grant)    Secret, CallTool
//	key-value buckets (need a grant)       package toolward/keyvalue
//	HTTP requests (need a grant)           package toolward/fetch, toolward/nethttp
//	files (need a grant)                   package os, below the contract's paths
//
// A component imports wasi:keyvalue and wasi:http only where the driver uses the
// packages for them, so one that doesn't needs no declaration.
package toolward
