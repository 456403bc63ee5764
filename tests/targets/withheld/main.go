// withheld is a program that can make a page of its heap profile's buckets one that nobody may read:
// it asks the kernel to be told of page faults there (userfaultfd), and never answers. Whoever
// waits for such a page waits for ever. Commands:
//
//	withhold  takes the page of the newest bucket away; answers "done", or the step that failed
//	quit      ends
//
// It names a variable of the runtime, which linkers from Go 1.23 on refuse.
package main

import (
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"unsafe"

	"targets/rig"
)

//go:linkname mbuckets runtime.mbuckets
var mbuckets unsafe.Pointer

const (
	sysUserfaultfd  = 323 // amd64
	uffdAPI         = 0xaa
	uffdioAPI       = 0xc018aa3f
	uffdioRegister  = 0xc020aa00
	registerMissing = 1
	pageBytes       = 4096
)

var (
	kept     [][]byte
	api      = [3]uint64{uffdAPI}
	register [4]uint64
)

func main() {
	runtime.MemProfileRate = 1
	for i := 0; i < 100; i++ {
		kept = append(kept, make([]byte, 64*(i+1)))
	}
	runtime.GC()
	runtime.GC()
	// From here on the runtime leaves the buckets alone.
	debug.SetGCPercent(-1)
	runtime.MemProfileRate = 1 << 30
	if pprof.Lookup("heap") == nil {
		panic("no heap profile")
	}
	rig.Ready()
	for {
		line := rig.Next()
		switch {
		case line == nil || string(line) == "quit":
			return
		case string(line) == "withhold":
			rig.Reply(withhold())
		default:
			rig.Reply("error: unknown command")
		}
	}
}

func withhold() string {
	page := uint64(uintptr(mbuckets)) &^ (pageBytes - 1)
	fd, _, e := syscall.RawSyscall(sysUserfaultfd, syscall.O_CLOEXEC, 0, 0)
	if e != 0 {
		return "error: userfaultfd"
	}
	if _, _, e = syscall.RawSyscall(syscall.SYS_IOCTL, fd, uffdioAPI,
		uintptr(unsafe.Pointer(&api))); e != 0 {
		return "error: UFFDIO_API"
	}
	register = [4]uint64{page, pageBytes, registerMissing}
	if _, _, e = syscall.RawSyscall(syscall.SYS_IOCTL, fd, uffdioRegister,
		uintptr(unsafe.Pointer(&register))); e != 0 {
		return "error: UFFDIO_REGISTER"
	}
	if _, _, e = syscall.RawSyscall(syscall.SYS_MADVISE, uintptr(page), pageBytes,
		syscall.MADV_DONTNEED); e != 0 {
		return "error: madvise"
	}
	return "done"
}
