// Package healthsvc is the contract by which an etcd member's health is published and followed.
package healthsvc
