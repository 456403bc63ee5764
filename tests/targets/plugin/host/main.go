// host opens the plugin that lies beside it: its runtime then has two modules of code.
package main

import (
	"os"
	"path/filepath"
	"plugin"

	"targets/heap/work"
)

func main() {
	work.Main(allocateInPlugin)
}

func allocateInPlugin() {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	p, err := plugin.Open(filepath.Join(filepath.Dir(exe), "part.so"))
	if err != nil {
		panic(err)
	}
	allocate, err := p.Lookup("Allocate")
	if err != nil {
		panic(err)
	}
	allocate.(func())()
}
