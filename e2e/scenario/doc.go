// Package scenario holds the faults that the project is about, as values that
// tests, the figures command and the demonstration run alike.
//
// A [Scenario] says what it does, step by step, to a real cluster ([cluster])
// while two applications under the same load ([workload]) use it: one with
// quorumwise, one with the official client as control. [Run] plays it and returns
// an [Outcome]: the figures of both, and every violation. A scenario whose control
// is expected to get stuck and does not is void, which counts as failed: it has
// not shown that there was anything to survive. So is one in which our client was late
// on a machine that was late itself ([Lateness]): it may be played again. What our client
// did wrong is a violation, however late the machine was.
//
// [All] lists them. Those marked Quick cover every mechanism once.
package scenario
