// Package work allocates in as many ways as a Go program can, keeps a part of it alive, and then
// obeys commands on stdin (see package rig):
//
//	dump   writes the program's own pprof.Lookup("heap") to PREFIX.heap.pb.gz; answers "dumped"
//	gc     runs runtime.GC() twice; answers "done"
//	alloc  allocates 64 objects of 3000 bytes in work.allocMore and keeps them; answers "done"
//	quit   ends
//
// What may differ between a reading from outside, taken while the target waits for a command, and
// the profile that the next "dump" writes:
//
//   - Samples whose stack has a frame of package runtime/pprof (or of what it calls: compress/*,
//     text/tabwriter, ...; they all lie above a runtime/pprof frame). Before its snapshot WriteTo
//     has already allocated the slice of records. With -gc 0 these objects are in the program's
//     own profile at once; after a collection they are not published yet, but their buckets exist
//     and become samples whose four values are all zero.
//   - Samples that consist of runtime frames only (runtime.allocm, runtime.malg below runtime.newm,
//     runtime.mstart): the runtime makes a thread whenever its scheduler wants one. Main starts a
//     few threads before "ready", and with the collector off nothing wakes another one, so none was
//     ever seen; a test may exclude them for safety.
//   - With -gc 0 the first dump folds all cycles into the published one (runtime.MemProfile does so
//     before the first collection). A reading after it, and a second dump, show the same numbers
//     plus nothing: later allocations stay invisible until a collection.
//   - time_nanos, and the order of samples where buckets were added.
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
