// Command driver is the tools `units.calculate` and `dates.calculate`: a calculator over
// units of measurement, and one over dates.
package main

import "toolward"

func init() {
	toolward.Tool("units.calculate", calculate)
	toolward.Tool("dates.calculate", dates)
}

// A component has no main, but a Go program does.
func main() {}
