// Package work allocates in as many ways as a Go program can, keeps a part of it alive, and then
// obeys commands on stdin (see package rig):
//
//	dump   writes the program's own pprof.Lookup("heap") to PREFIX.heap.pb.gz; answers "dumped"
//	gc     runs runtime.GC() twice; answers "done"
//	alloc  allocates 64 objects of 3000 bytes in work.allocMore and keeps them; answers "done"
//	exec   becomes the same program anew, with the same pid; "ready" comes again
//	quit   ends
//
// What may differ between a reading from outside, taken while the target waits for a command, and
// the profile that the next "dump" writes:
//
//   - Samples whose stack has a frame of package runtime/pprof; what it calls (compress/*, ...) lies
//     below such a frame. WriteTo makes their buckets (120 to 150 of them), some before its
//     snapshot, but in no mode are their values published by then: after a collection they wait
//     for the next, and before the first one runtime.MemProfile has folded all cycles already when
//     it was asked for the number of records. So in the program's own profile they are samples with
//     four zeros, and a test that compares samples with a non-zero value sees no difference. They
//     do show up in a reading or a dump after the gc command.
//   - Samples that consist of runtime frames only (runtime.allocm below runtime.newm, runtime.malg):
//     the runtime makes a thread whenever its scheduler wants one. Their number differs from run to
//     run, but Start makes a few threads early, and with the collector off nothing wakes another
//     one: between "ready" and the dump none was ever seen.
//   - time_nanos, and the position of samples where buckets were added.
//   - With -gc 0 the first dump changes the target: all cycles are folded into the published one.
//     What is allocated afterwards is invisible, inside and outside, until a collection.
//
// Everything else is equal: the collector is off from "ready" on, except inside the gc command.
package work

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"syscall"

	"targets/rig"
)

// fdWriter writes without the os package's buffers and locks.
type fdWriter struct{ fd int }

func (w *fdWriter) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := syscall.Write(w.fd, b[done:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

var (
	out     = fdWriter{fd: -1}
	profile *pprof.Profile
	more    [][]byte
)

// Main is the life of a target; extra allocates what is particular to it.
func Main(extra func()) {
	Start(extra)
	rig.Ready()
	for {
		switch string(rig.Next()) {
		case "dump":
			if !Dump() {
				rig.Reply("error: no -o PREFIX, or it cannot be written")
				continue
			}
			rig.Reply("dumped")
		case "gc":
			Collect()
			rig.Reply("done")
		case "alloc":
			More()
			rig.Reply("done")
		case "exec":
			syscall.Exec("/proc/self/exe", os.Args, os.Environ())
		case "quit", "":
			return
		default:
			rig.Reply("error: unknown command")
		}
	}
}

// Start allocates everything and leaves the program quiet.
func Start(extra func()) {
	if rig.GCs == 0 {
		debug.SetGCPercent(-1)
	}
	openOutput()
	more = make([][]byte, 0, 1<<16)
	startThreads()
	allocate()
	if extra != nil {
		extra()
	}
	for i := 0; i < rig.GCs; i++ {
		runtime.GC()
	}
	debug.SetGCPercent(-1)
}

func openOutput() {
	profile = pprof.Lookup("heap")
	if rig.Out == "" {
		return
	}
	f, err := os.OpenFile(rig.Out+".heap.pb.gz", os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		panic(err)
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		panic(err)
	}
	syscall.CloseOnExec(fd)
	f.Close()
	out.fd = fd
}

// startThreads makes the runtime create threads now rather than at an odd moment later.
func startThreads() {
	const n = 4
	started := make(chan bool)
	release := make(chan bool)
	for i := 0; i < n; i++ {
		go func() {
			runtime.LockOSThread()
			started <- true
			<-release
			runtime.UnlockOSThread()
		}()
	}
	for i := 0; i < n; i++ {
		<-started
	}
	close(release)
}

// Dump writes the program's own heap profile over the last one.
func Dump() bool {
	if out.fd < 0 || syscall.Ftruncate(out.fd, 0) != nil {
		return false
	}
	if _, err := syscall.Seek(out.fd, 0, 0); err != nil {
		return false
	}
	return profile.WriteTo(&out, 0) == nil
}

// Collect publishes everything that was allocated and freed so far.
func Collect() {
	runtime.GC()
	runtime.GC()
}

// More allocates a known amount: 64 times 3000 bytes (an object of 3072).
func More() {
	for i := 0; i < 64; i++ {
		allocMore()
	}
}

//go:noinline
func allocMore() {
	more = append(more, make([]byte, 3000))
}

// allocate runs every kind of allocation there is.
func allocate() {
	paths()
	deep(200)
	inlined()
	interfaces()
	closures()
	goroutines()
	growth()
	methodValues()
	defers()
	sizes()
	garbage()
	generic()
}
