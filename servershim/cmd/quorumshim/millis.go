package main

import (
	"fmt"
	"strconv"
	"time"
)

// millis is a time that etcd's flag of the same name takes in milliseconds without a unit. It takes
// both, so that the value can be copied from etcd's configuration.
type millis time.Duration

// String implements pflag.Value.
func (m *millis) String() string { return time.Duration(*m).String() }

// Type implements pflag.Value.
func (m *millis) Type() string { return "duration" }

// Set implements pflag.Value.
func (m *millis) Set(s string) error {
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		*m = millis(time.Duration(n) * time.Millisecond)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is no time: want for example 1s, or 1000 for milliseconds as in etcd", s)
	}
	*m = millis(d)
	return nil
}
