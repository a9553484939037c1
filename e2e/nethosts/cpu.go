//go:build linux

package nethosts

import (
	"fmt"
	"strconv"
	"time"
)

// The processes of a starved host run for their share of every period and stand
// still for the rest of it, together: so the period is also the longest pause
// of a host that is not overloaded.
const (
	cpuPeriod = 100 * time.Millisecond
	// minQuota is the least that the kernel grants in a period.
	minQuota = time.Millisecond
)

// LimitCPU gives all processes of the host, also those started later, no more
// than so many cores' time. At least 0.01 are given, which the kernel grants. Of
// several limits the tightest is in force. An [UnavailableError] where the
// machine has no control groups for it.
func (h *Host) LimitCPU(cores float64) (*Fault, error) {
	if !(cores > 0) {
		return nil, fmt.Errorf("nethosts: %s with %v cores: want more than 0", h.Name(), cores)
	}
	if _, err := h.equipment.groups.group(controlCPU); err != nil {
		return nil, &UnavailableError{What: "a host with too little CPU", Why: err.Error()}
	}
	h.mu.Lock() // no process is forked meanwhile: it would be missed
	lift, err := h.equipment.groups.tighten(controlCPU, cores)
	h.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("nethosts: limiting the CPU of %s to %v cores: %w", h.Name(), cores, err)
	}
	return h.lab.addFault(fmt.Sprintf("%s has %v cores", h.Name(), cores), lift), nil
}

// limitCPU sets the limit of a group, none where cores is 0.
func (g hostGroup) limitCPU(cores float64) error {
	period := strconv.FormatInt(cpuPeriod.Microseconds(), 10)
	quota := strconv.FormatInt(max(minQuota, time.Duration(cores*float64(cpuPeriod))).Microseconds(), 10)
	if g.tree.version == 2 {
		if cores == 0 {
			quota = "max"
		}
		return write(g.dir, "cpu.max", quota+" "+period)
	}
	if cores == 0 {
		quota = "-1"
	}
	if err := write(g.dir, "cpu.cfs_period_us", period); err != nil {
		return err
	}
	return write(g.dir, "cpu.cfs_quota_us", quota)
}
