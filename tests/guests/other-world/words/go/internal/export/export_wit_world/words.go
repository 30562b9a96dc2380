//go:build wasip1

// Package export_wit_world is what the generated exports call, under the name that
// they give it.
package export_wit_world

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"words/internal/wit/types"
)

// Count is the export count.
func Count(text string) uint32 {
	return uint32(len(strings.Fields(text)))
}

// Longest is the export longest.
func Longest(words []string) wit_types.Option[string] {
	if len(words) == 0 {
		return wit_types.None[string]()
	}
	longest := words[0]
	for _, word := range words {
		if utf8.RuneCountInString(word) > utf8.RuneCountInString(longest) {
			longest = word
		}
	}
	return wit_types.Some(longest)
}

// Divide is the export divide.
func Divide(a, b int64) wit_types.Result[int64, string] {
	if b == 0 {
		return wit_types.Err[int64, string](fmt.Sprintf("%d is not divided by 0", a))
	}
	return wit_types.Ok[int64, string](a / b)
}
