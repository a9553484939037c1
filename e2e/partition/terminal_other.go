//go:build !unix

package main

import "os"

// terminalSize knows of no terminals here: output is plain lines.
func terminalSize(*os.File) (width, height int, ok bool) { return 0, 0, false }
