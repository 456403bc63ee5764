// execs runs another program in its place every few milliseconds: itself, or what -next names, which
// is told to come back. Its pid stays.
//
//	execs -next PROGRAM -every MICROSECONDS
package main

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"targets/rig"
)

func main() {
	next, every, count := os.Args[0], 3000, 0
	for i := 1; i+1 < len(os.Args); i += 2 {
		switch os.Args[i] {
		case "-next":
			next = os.Args[i+1]
		case "-every":
			every, _ = strconv.Atoi(os.Args[i+1])
		case "-count":
			count, _ = strconv.Atoi(os.Args[i+1])
		}
	}
	if count == 0 {
		rig.Ready()
	}
	time.Sleep(time.Duration(every) * time.Microsecond)
	err := syscall.Exec(next, []string{next, "-next", os.Args[0], "-every", strconv.Itoa(every),
		"-count", strconv.Itoa(count + 1)}, os.Environ())
	panic(err)
}
