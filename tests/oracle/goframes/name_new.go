//go:build go1.21

package main

import (
	"runtime"
	_ "unsafe"
)

//go:linkname symbolName runtime/pprof.runtime_FrameSymbolName
func symbolName(f *runtime.Frame) string

func name(f *runtime.Frame) string { return symbolName(f) }
