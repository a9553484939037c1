//go:build linux

package nethosts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const versionOneMounts = `24 1 0:22 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
25 24 0:23 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct
26 24 0:24 /docker/ab /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
27 24 0:25 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
28 24 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
a line of nonsense
`

func TestGroupsOfVersionOneAreMadeBelowTheHarnesssOwn(t *testing.T) {
	mounts, err := groupMounts(strings.NewReader(versionOneMounts))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := memberships(strings.NewReader("9:cpu,cpuacct:/jobs/7\n4:memory:/docker/ab/c\n1:cpuset:/\n0::/\nnonsense\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[controller]string{}
	for _, h := range chooseHierarchies(mounts, paths) {
		for _, c := range h.controllers {
			got[c] = h.parent
		}
	}
	want := map[controller]string{controlCPU: "/sys/fs/cgroup/cpu,cpuacct/jobs/7", controlMemory: "/sys/fs/cgroup/memory/c"}
	for c, dir := range want {
		if got[c] != dir {
			t.Errorf("%s: groups below %q, want %q: the harness's own limits must go on to hold", c, got[c], dir)
		}
	}
}

func TestMembershipOutsideOfTheMountFallsBackToTheMount(t *testing.T) {
	m := mountOf{root: "/docker/ab", point: "/sys/fs/cgroup/memory"}
	for path, want := range map[string]string{
		"/docker/ab":     "/sys/fs/cgroup/memory",
		"/docker/abc":    "/sys/fs/cgroup/memory",
		"/":              "/sys/fs/cgroup/memory",
		"":               "/sys/fs/cgroup/memory",
		"/docker/ab/c/d": "/sys/fs/cgroup/memory/c/d",
	} {
		if got := m.directory(path); got != want {
			t.Errorf("the group %q is seen at %q, want %q", path, got, want)
		}
	}
}

// In version 2 a group that has processes hands nothing down.
func TestGroupsOfVersionTwoAreMadeWhereControllersAreHandedDown(t *testing.T) {
	top := t.TempDir()
	session := filepath.Join(top, "user.slice", "session")
	if err := os.MkdirAll(session, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(dir, handsDown string) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(handsDown+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	choose := func() (string, []controller) {
		found := chooseHierarchies([]mountOf{{version: 2, root: "/", point: top}}, map[string]string{"": "/user.slice/session"})
		if len(found) == 0 {
			return "", nil
		}
		return found[0].parent, found[0].controllers
	}
	put(session, "")
	put(filepath.Dir(session), "memory pids")
	put(top, "cpuset cpu io memory pids")
	if dir, got := choose(); dir != top || !slices.Equal(got, controllers) {
		t.Errorf("got %s with %v, want %s: the nearest that hands down both", dir, got, top)
	}
	put(filepath.Dir(session), "cpu memory")
	if dir, _ := choose(); dir != filepath.Dir(session) {
		t.Errorf("got %s, want %s: the nearest that hands down both", dir, filepath.Dir(session))
	}
	put(filepath.Dir(session), "")
	put(top, "cpuset")
	if dir, got := choose(); len(got) > 0 {
		t.Errorf("got %s with %v, want none: nobody hands them down", dir, got)
	}
}

func TestProcessOfVersionTwoIsBornIntoItsGroup(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	h := hostGroups{groups: []hostGroup{{tree: &labTree{hierarchy: hierarchy{version: 2}}, fd: dir}}}
	var attr syscall.SysProcAttr
	if err := h.join(&attr); err != nil || !attr.UseCgroupFD || attr.CgroupFD != int(dir.Fd()) {
		t.Errorf("got %v and %+v, want descriptor %d used", err, attr, dir.Fd())
	}
}

func TestGroupsOfDeadLabsAreSweptAndThoseOfLivingOnesAreNot(t *testing.T) {
	parent := t.TempDir()
	h := hierarchy{version: 1, parent: parent}
	living, err := newLabTree(h, groupPrefix+"living")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newLabTree(h, groupPrefix+"dead")
	if err != nil {
		t.Fatal(err)
	}
	groups := labGroups{trees: []*labTree{dead}}
	groups.newHostGroups("m1")
	foreign := filepath.Join(parent, "other")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as the kernel does when a process dies
	if err := sweep(parent); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{living.dir: true, dead.dir: false, foreign: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
	if err := living.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(living.dir); err == nil {
		t.Error("a closed lab's groups are there, want them removed")
	}
}

func TestTightestLimitIsInForce(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cpu.cfs_period_us", "cpu.cfs_quota_us"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := hostGroups{
		groups: []hostGroup{{tree: &labTree{hierarchy: hierarchy{version: 1, controllers: []controller{controlCPU}}}, dir: dir}},
		limits: map[controller]*limit{},
	}
	want := func(step, quota string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
		// The file system of the kernel takes every write as a whole.
		if err != nil || !strings.HasPrefix(string(got), quota) {
			t.Errorf("%s: quota %q (%v), want %q", step, got, err, quota)
		}
	}
	var lifts []func() error
	for _, cores := range []float64{0.5, 0.2, 0.7} {
		lift, err := h.tighten(controlCPU, cores)
		if err != nil {
			t.Fatal(err)
		}
		lifts = append(lifts, lift)
	}
	want("0.5, 0.2, 0.7 cores", "20000")
	for i, step := range []struct {
		lift  int
		quota string
	}{{1, "50000"}, {1, "50000"}, {0, "70000"}, {2, "-1"}} {
		if err := lifts[step.lift](); err != nil {
			t.Fatal(err)
		}
		want(string(rune('1'+i))+" lifted", step.quota)
	}
	if _, err := h.tighten(controlMemory, 1); err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("got %v, want an error that names the controller that is missing", err)
	}
}
