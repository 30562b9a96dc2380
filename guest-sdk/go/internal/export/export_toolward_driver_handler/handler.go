//go:build wasip1

// Package export_toolward_driver_handler is what the generated exports call, under
// the name that they give it.
package export_toolward_driver_handler

import (
	wit "toolward/internal/wit/toolward_driver_types"
	"toolward/internal/wit/types"
)

// Handler runs one call. Package host sets it.
var Handler func(wit.Invocation) wit_types.Result[wit.Outcome, wit.ToolError]

// Execute is the export execute of toolward:driver/handler.
func Execute(call wit.Invocation) wit_types.Result[wit.Outcome, wit.ToolError] {
	return Handler(call)
}
