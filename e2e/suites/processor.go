//go:build linux

package suites

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// processorsMost is on how many processors the harness sleeps at most: on a machine with more
// it would be a load itself.
const processorsMost = 16

// anyProcessor is where the kernel does not tell, or does not let us choose.
const anyProcessor = -1

// processors are those that this process may run on.
func processors() (cpus []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return []int{anyProcessor}
	}
	for cpu := 0; len(cpus) < min(set.Count(), processorsMost); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// onProcessor runs f on a thread that runs on one processor only, as long as f does.
func onProcessor(cpu int, f func()) {
	runtime.LockOSThread()
	var before, only unix.CPUSet
	if cpu == anyProcessor || unix.SchedGetaffinity(0, &before) != nil {
		defer runtime.UnlockOSThread()
		f()
		return
	}
	only.Set(cpu)
	_ = unix.SchedSetaffinity(0, &only) // one that was taken away meanwhile: anywhere else
	defer func() {
		// A thread that cannot be given back ends with its goroutine.
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		}
	}()
	f()
}
