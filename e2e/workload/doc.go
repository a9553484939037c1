// Package workload puts an application's load on an etcd client and judges
// afterwards what its user has seen.
//
// A [Load] works on any *clientv3.Client: loops of Gets and Puts, with a request
// timeout and without any deadline, watches on streams of their own, and leases
// kept alive on streams of their own. A [Reference] writes numbered events through
// a member that no fault touches and watches them there: what it sees, when, is
// what every other watch is compared with. A [Trace] sits in the client as a gRPC
// stats handler and files every attempt under the address that it went to, so that
// the same can be measured on any client, whatever it is made of. [Arrivals]
// counts mutations by the identity in their value where they reach a server.
//
// Everything is recorded first and checked afterwards by pure functions:
// [CheckWatch], [CheckOnce], [CheckReads], [CheckLease]. Each has a test with a
// planted violation.
//
// A Load and a Reference own their goroutines; Stop waits for them. Trace and
// Arrivals may be used concurrently.
package workload
