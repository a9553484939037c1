package command

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
	d, err := time.ParseDuration(s)
	if n, plain := strconv.ParseInt(s, 10, 32); plain == nil {
		d, err = time.Duration(n)*time.Millisecond, nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q is no time: want for example 1s, or 1000 for milliseconds as in etcd", s)
	case d <= 0: // a zero would come to mean the default, silently
		return fmt.Errorf("%q is no time to wait for: want 100ms to 50s, as etcd has; leave the flag out for %v", s, time.Second)
	}
	*m = millis(d)
	return nil
}
