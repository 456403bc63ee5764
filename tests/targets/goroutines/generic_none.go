//go:build !go1.18

package main

func waitMore() {}
