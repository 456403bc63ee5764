//go:build !go1.21

package main

import "runtime"

func name(f *runtime.Frame) string { return f.Function }
