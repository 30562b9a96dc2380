//go:build toolward_snapshot

package toolward

import "unsafe"

// adapterMemory is two pages, aligned, for the adapter to WASI preview 1. It takes them in the first call where the
// program has started before, and can't have them from the end of the memory, which is Go's.
var adapterMemory [2*65536 + 15]byte

// The export by which `toolward build` finds them.
//
//go:wasmexport toolward_adapter_memory
func adapterMemoryAddress() unsafe.Pointer {
	start := unsafe.Pointer(&adapterMemory)
	return unsafe.Add(start, -uintptr(start)&15)
}
