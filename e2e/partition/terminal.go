//go:build linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize is the size of the terminal behind f, and whether there is one.
func terminalSize(f *os.File) (width, height int, ok bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(ws.Col), int(ws.Row), true
}
