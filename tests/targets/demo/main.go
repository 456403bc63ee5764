// demo is a small order service to look at: it decodes orders, renders invoices, and keeps too much
// in a cache. It runs until it is interrupted or its stdin ends, and prints "ready PID".
package main

import (
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"

	"targets/rig"
)

func main() {
	// A program that can look up its heap profile keeps the runtime's memory sampling on.
	if pprof.Lookup("heap") == nil {
		panic("no heap profile")
	}
	service := NewOrderService()
	go service.Run(time.Tick(20 * time.Millisecond))

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		for line := rig.Next(); line != nil && string(line) != "quit"; line = rig.Next() {
		}
		stop <- os.Interrupt
	}()
	rig.Ready()
	<-stop
}
