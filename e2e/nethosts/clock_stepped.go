//go:build quorumwise_stepclock && linux && (amd64 || arm64)

package nethosts

import _ "unsafe" // for go:linkname

const canStep = true

// stepWallClock is in the runtime, where stepCode puts it.
//
//go:linkname stepWallClock
func stepWallClock(d int64)
