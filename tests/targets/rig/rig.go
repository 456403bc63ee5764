// Package rig is what the Go targets share: their arguments, and the line protocol by which a test
// drives them without sleeping.
//
// A target prints "ready PID", then answers one line per command line it reads on stdin. Between
// two commands it sits in read(2). Nothing here allocates after init, so that with -rate 1 the
// reading of a command leaves no trace in the heap profile.
package rig

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// Arguments, parsed before any other package of a target is initialised.
var (
	Rate = 0  // -rate N: runtime.MemProfileRate; 0 leaves it alone
	GCs  = 2  // -gc N: collections after allocating; 0 means that none ever runs
	Out  = "" // -o PREFIX: where to write own profiles
	Load = false
	CPU  = "" // -cpu FILE: write a CPU profile until the end
)

var (
	readyLine []byte
	input     [4096]byte
	inputLen  int
	reply     [256]byte
)

func init() {
	for i := 1; i < len(os.Args); i++ {
		next := ""
		if i+1 < len(os.Args) {
			next = os.Args[i+1]
		}
		switch os.Args[i] {
		case "-rate":
			Rate, _ = strconv.Atoi(next)
			i++
		case "-gc":
			GCs, _ = strconv.Atoi(next)
			i++
		case "-o":
			Out = next
			i++
		case "-cpu":
			CPU = next
			i++
		case "-load":
			Load = true
		}
	}
	if Rate != 0 {
		runtime.MemProfileRate = Rate
	}
	readyLine = []byte("ready " + strconv.Itoa(os.Getpid()) + "\n")
}

// Ready tells the test that all allocation is over.
func Ready() {
	write(readyLine)
}

// Reply answers one command; msg is a constant or was made before.
func Reply(msg string) {
	n := copy(reply[:len(reply)-1], msg)
	reply[n] = '\n'
	write(reply[:n+1])
}

// ReplyBytes is Reply for what the caller has put together.
func ReplyBytes(msg []byte) {
	n := copy(reply[:len(reply)-1], msg)
	reply[n] = '\n'
	write(reply[:n+1])
}

// ReplyNumber answers "msg N".
func ReplyNumber(msg string, v uint64) {
	var digits [20]byte
	i := len(digits)
	for {
		i--
		digits[i] = byte('0' + v%10)
		v /= 10
		if v == 0 {
			break
		}
	}
	n := copy(reply[:], msg)
	reply[n] = ' '
	n++
	n += copy(reply[n:], digits[i:])
	reply[n] = '\n'
	write(reply[:n+1])
}

// Next waits for a command. The bytes are valid until the next call; nil at the end of stdin.
func Next() []byte {
	done := 0
	for {
		for i := done; i < inputLen; i++ {
			if input[i] == '\n' {
				line := pending[:copy(pending[:], input[:i])]
				inputLen = copy(input[:], input[i+1:inputLen])
				return line
			}
		}
		done = inputLen
		if inputLen == len(input) {
			return nil
		}
		n, err := syscall.Read(0, input[inputLen:])
		if err == syscall.EINTR || err == syscall.EAGAIN {
			continue
		}
		if n <= 0 {
			return nil
		}
		inputLen += n
	}
}

var pending [4096]byte

func write(b []byte) {
	for len(b) > 0 {
		n, err := syscall.Write(1, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		b = b[n:]
	}
}
