// Package report shows what a run of the suites has found: one HTML page that needs no
// network, and the same as JSON and as JUnit XML; the figures per fault also as plain
// text and as Markdown.
//
// [Run] is plain data. Whoever plays scenarios fills it in, [Write] writes a directory
// of it, and [ReadJSON] reads results.json back, so that a table can be made of a run
// without playing it again. Nothing here measures or judges.
//
// A duration that did not end before the fault did is [Never], and is shown as "never"
// everywhere, never as a number. In JSON all other durations are numbers of seconds,
// and a [Point] is a pair of seconds and number.
//
// Texts may hold anything (what a crashed member printed last): they are escaped, and
// characters that HTML or XML cannot hold become U+FFFD.
//
// All functions are pure apart from what they write to; they may be used concurrently.
package report
