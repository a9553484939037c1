// Package oracle compares the fake cluster with a real etcd server, answer by answer. It holds
// tests only: they start an embedded server on loopback, which does not belong in a bubble.
package oracle
