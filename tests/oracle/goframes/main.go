// Prints what runtime/pprof makes of addresses in this very program, for test_unwind.py: reads
// hexadecimal addresses, and prints each with its functions, the innermost inlined one first.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	_ "unsafe"
)

// Code to look at.
var _ = http.ListenAndServe
var _ = json.Marshal

//go:linkname expandFinalInlineFrame runtime/pprof.runtime_expandFinalInlineFrame
func expandFinalInlineFrame(stk []uintptr) []uintptr

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		pc, err := strconv.ParseUint(in.Text(), 16, 64)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(out, "%x\n", pc)
		frames := runtime.CallersFrames(expandFinalInlineFrame([]uintptr{uintptr(pc) + 1}))
		for {
			f, more := frames.Next()
			if f.Func != nil || f.Function != "" {
				fmt.Fprintf(out, " %s %s:%d\n", name(&f), f.File, f.Line)
			}
			if !more {
				break
			}
		}
	}
}
