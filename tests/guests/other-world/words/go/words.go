//go:build wasip1

// Command words is a component of the world words, made without Toolward's library.
package main

import _ "words/internal/wit/wit_exports" // what makes the program a component's module

// A component has no main, but a Go program does.
func main() {}
