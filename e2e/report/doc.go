// Package report shows what a run of the suites has found: one HTML page that needs no
// network, and the same as JSON and as JUnit XML.
package report
