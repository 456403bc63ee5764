//go:build !go1.18

package work

func generic() {}
