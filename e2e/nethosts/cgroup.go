//go:build linux

package nethosts

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Control groups are the one thing of a lab that has a name outside of its
// namespaces. A lab's are below one directory in each hierarchy, with a name that
// no other lab has, and the lab holds a lock on that directory for as long as it
// lives. So whoever gets the lock knows that the lab is dead and may take its
// groups away: the next lab does it, and the guard after a crash.
//
// They are made below the control group that the harness is in, where its own
// limits go on to hold.

// groupPrefix begins the name of every lab's directory.
const groupPrefix = "quorumwise-"

// controller is what limits one thing.
type controller string

const (
	controlCPU    controller = "cpu"
	controlMemory controller = "memory"
)

var controllers = []controller{controlCPU, controlMemory}

// hierarchy is a tree of control groups with the controllers that we use of it.
type hierarchy struct {
	version     int    // 1 or 2
	parent      string // the directory below which a lab makes its own
	controllers []controller
}

// mountOf is one line of mountinfo that is about control groups.
type mountOf struct {
	version int
	root    string // what of the hierarchy is mounted
	point   string
	options []string // of the file system: the controllers in version 1
}

// groupMounts reads the mounts of control groups from mountinfo.
func groupMounts(mountinfo io.Reader) ([]mountOf, error) {
	var mounts []mountOf
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		mount, super, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(mount), strings.Fields(super)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		switch right[0] {
		case "cgroup":
			mounts = append(mounts, mountOf{version: 1, root: left[3], point: left[4], options: strings.Split(right[2], ",")})
		case "cgroup2":
			mounts = append(mounts, mountOf{version: 2, root: left[3], point: left[4]})
		}
	}
	return mounts, lines.Err()
}

// memberships reads /proc/self/cgroup: the path by controller in version 1, by
// "" in version 2.
func memberships(cgroup io.Reader) (map[string]string, error) {
	paths := map[string]string{}
	lines := bufio.NewScanner(cgroup)
	for lines.Scan() {
		_, rest, _ := strings.Cut(lines.Text(), ":")
		names, path, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			paths[name] = path
		}
	}
	return paths, lines.Err()
}

// hierarchies finds where a lab can make its groups.
func hierarchies() ([]hierarchy, error) {
	mountinfo, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer mountinfo.Close()
	mounts, err := groupMounts(mountinfo)
	if err != nil {
		return nil, err
	}
	cgroup, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	defer cgroup.Close()
	paths, err := memberships(cgroup)
	if err != nil {
		return nil, err
	}
	return chooseHierarchies(mounts, paths), nil
}

func chooseHierarchies(mounts []mountOf, paths map[string]string) []hierarchy {
	var found []hierarchy
	for _, m := range mounts {
		switch m.version {
		case 1:
			for _, c := range controllers {
				if slices.Contains(m.options, string(c)) {
					found = append(found, hierarchy{version: 1, parent: m.directory(paths[string(c)]), controllers: []controller{c}})
				}
			}
		case 2:
			if parent, distributed := distributing(m.directory(paths[""]), m.point); len(distributed) > 0 {
				found = append(found, hierarchy{version: 2, parent: parent, controllers: distributed})
			}
		}
	}
	return found
}

// directory is where a path in the hierarchy is seen.
func (m mountOf) directory(path string) string {
	inside, err := filepath.Rel(m.root, path)
	if err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		return m.point
	}
	return filepath.Join(m.point, inside)
}

// distributing is the nearest group from dir up to top that hands controllers of
// ours down to its children. In version 2 a group with processes in it cannot,
// except the root.
func distributing(dir, top string) (string, []controller) {
	for {
		enabled, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		var ours []controller
		for _, c := range controllers {
			if slices.Contains(strings.Fields(string(enabled)), string(c)) {
				ours = append(ours, c)
			}
		}
		if len(ours) == len(controllers) || dir == top || len(dir) <= len(top) {
			return dir, ours
		}
		dir = filepath.Dir(dir)
	}
}

// labGroups are the control groups of a lab.
type labGroups struct {
	trees []*labTree
	why   error // that there are none, or fewer than there could be
}

// labTree is a lab's directory in one hierarchy.
type labTree struct {
	hierarchy
	dir  string
	lock *os.File
}

// newLabGroups makes the directories of a lab, and removes those of labs that
// are dead. What cannot be had is told to whoever asks for a limit.
func newLabGroups() *labGroups {
	g := &labGroups{}
	found, err := hierarchies()
	if err != nil {
		g.why = err
		return g
	}
	name := groupPrefix + rand.Text()[:10]
	for _, h := range found {
		_ = sweep(h.parent)
		tree, err := newLabTree(h, name)
		if err != nil {
			g.why = err
			continue
		}
		g.trees = append(g.trees, tree)
	}
	return g
}

func newLabTree(h hierarchy, name string) (*labTree, error) {
	t := &labTree{hierarchy: h, dir: filepath.Join(h.parent, name)}
	for {
		if err := os.Mkdir(t.dir, 0o755); err != nil {
			return nil, err
		}
		lock, err := lockDirectory(t.dir)
		if err != nil {
			return nil, errors.Join(err, os.Remove(t.dir))
		}
		if lock != nil {
			t.lock = lock
			break
		}
		// Swept by another lab between Mkdir and lock: once more.
	}
	if h.version == 2 {
		for _, c := range h.controllers {
			if err := write(t.dir, "cgroup.subtree_control", "+"+string(c)); err != nil {
				return nil, errors.Join(err, t.close())
			}
		}
	}
	return t, nil
}

// lockDirectory locks a directory until the file returned is closed. It is nil
// where another process has the lock, or had it and removed the directory.
func lockDirectory(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, err
	}
	mine, err := f.Stat()
	if err == nil {
		named, statErr := os.Stat(dir)
		if statErr == nil && os.SameFile(mine, named) {
			return f, nil
		}
	}
	f.Close()
	return nil, nil
}

// sweep removes the groups of dead labs. What is still in use is left to the
// next one.
func sweep(parent string) error {
	labs, err := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	if err != nil {
		return err
	}
	var left error
	for _, dir := range labs {
		lock, err := lockDirectory(dir)
		if lock == nil {
			left = errors.Join(left, err)
			continue
		}
		left = errors.Join(left, removeTree(dir))
		lock.Close()
	}
	return left
}

// sweepAll removes the groups of dead labs in all hierarchies.
func sweepAll() error {
	found, err := hierarchies()
	for _, h := range found {
		err = errors.Join(err, sweep(h.parent))
	}
	return err
}

// removeTree removes a group and those below it. The files in them are not files
// to remove.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(dir); err != nil {
		return fmt.Errorf("removing the control group %s: %w", dir, err)
	}
	return nil
}

// removePatiently removes a group whose processes are about to end: the kernel
// counts them in until they are reaped.
func removePatiently(dir string) error {
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := removeTree(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return fmt.Errorf("nethosts: %w", err)
		}
	}
}

func (t *labTree) close() error {
	err := removePatiently(t.dir)
	t.lock.Close()
	return err
}

// close removes the groups. The processes in them have ended.
func (g *labGroups) close() error {
	var err error
	for _, t := range g.trees {
		err = errors.Join(err, t.close())
	}
	g.trees = nil
	return err
}

// hostGroup is the control group of a host in one hierarchy.
type hostGroup struct {
	tree *labTree
	dir  string
	fd   *os.File // of dir, in version 2
}

// hostGroups are the control groups of a host. All its processes are in the one
// for memory from their first instruction on: memory counts where it was first
// used, so a process that moves in later would have the most of its own outside.
type hostGroups struct {
	groups []hostGroup
	why    error

	mu     sync.Mutex // over what follows, and over the files of the groups
	limits map[controller]*limit
}

// newHostGroups makes the groups of a host that is called name.
func (g *labGroups) newHostGroups(name string) *hostGroups {
	h := &hostGroups{why: g.why, limits: map[controller]*limit{}}
	for _, t := range g.trees {
		made := hostGroup{tree: t, dir: filepath.Join(t.dir, "host-"+name)}
		err := os.Mkdir(made.dir, 0o755)
		if err == nil && t.version == 2 {
			made.fd, err = os.Open(made.dir)
		}
		if err != nil {
			h.why = err
			continue
		}
		h.groups = append(h.groups, made)
	}
	return h
}

// join is called on the thread that forks a process of the host, and ends
// afterwards. In version 1 the thread alone changes its group, and the process
// inherits it; in version 2 threads cannot, and the process is born into it.
func (h *hostGroups) join(attr *syscall.SysProcAttr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.groups {
		switch {
		case h.late(g) && h.limits[controlCPU].tightest() == 0:
		case g.tree.version == 1:
			if err := write(g.dir, "tasks", "0"); err != nil {
				return err
			}
		default:
			attr.UseCgroupFD, attr.CgroupFD = true, int(g.fd.Fd())
		}
	}
	return nil
}

// late reports whether processes are in a group only while there is a limit: a
// group of CPU has one process's share of a busy machine, however many there are
// in it. In version 2 a process has one group for everything, and without another
// group nobody lists the processes.
func (h *hostGroups) late(g hostGroup) bool {
	return g.tree.version == 1 && slices.Equal(g.tree.controllers, []controller{controlCPU}) && h.roll(g) != ""
}

// roll is the directory of another group, which lists the host's processes; ""
// without one.
func (h *hostGroups) roll(not hostGroup) string {
	for _, g := range h.groups {
		if g.dir != not.dir {
			return g.dir
		}
	}
	return ""
}

// gatherIn moves the host's processes into the directory to: also those that are
// forked meanwhile, for a child is in its parent's group.
func (h *hostGroups) gatherIn(g hostGroup, to string) error {
	// Not the harness itself: the thread that forked may still be about to end.
	moved := map[string]bool{strconv.Itoa(os.Getpid()): true}
	for again := true; again; {
		again = false
		pids, err := os.ReadFile(filepath.Join(h.roll(g), "cgroup.procs"))
		if err != nil {
			return err
		}
		for pid := range strings.FieldsSeq(string(pids)) {
			if moved[pid] {
				continue
			}
			moved[pid], again = true, true
			// One that has ended meanwhile is no failure.
			if err := write(to, "cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// enforce puts a limit in force, none where value is 0.
func (h *hostGroups) enforce(g hostGroup, c controller, value float64) error {
	err := g.limit(c, value)
	if err != nil || !h.late(g) {
		return err
	}
	if value == 0 {
		return h.gatherIn(g, g.tree.parent)
	}
	return h.gatherIn(g, g.dir)
}

// free lifts all limits, without the knowledge of who set them.
func (h *hostGroups) free() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	for c, l := range h.limits {
		clear(l.inForce)
		if g, groupErr := h.group(c); groupErr == nil {
			err = errors.Join(err, h.enforce(g, c, 0))
		}
	}
	return err
}

// close removes the groups of the host, whose processes have ended.
func (h *hostGroups) close() error {
	var err error
	for _, g := range h.groups {
		if g.fd != nil {
			g.fd.Close()
		}
		err = errors.Join(err, removePatiently(g.dir))
	}
	h.groups = nil
	return err
}

// group is the host's group that has a controller.
func (h *hostGroups) group(c controller) (hostGroup, error) {
	for _, g := range h.groups {
		if slices.Contains(g.tree.controllers, c) {
			return g, nil
		}
	}
	way := fmt.Sprintf("it takes root and a control group with the controller %s: mount it (version 1), or hand it down (version 2: echo +%s > /sys/fs/cgroup/cgroup.subtree_control)", c, c)
	if h.why != nil {
		return hostGroup{}, fmt.Errorf("%w: %s", h.why, way)
	}
	return hostGroup{}, errors.New(way)
}

// limit is the limits of one host by one controller. The tightest is in force.
type limit struct {
	inForce map[int]float64
	next    int
}

// tighten puts one more limit in force. The function returned takes it away again.
func (h *hostGroups) tighten(c controller, value float64) (lift func() error, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, err := h.group(c)
	if err != nil {
		return nil, err
	}
	if h.limits[c] == nil {
		h.limits[c] = &limit{inForce: map[int]float64{}}
	}
	l := h.limits[c]
	l.next++
	id := l.next
	l.inForce[id] = value
	if err := h.enforce(g, c, l.tightest()); err != nil {
		delete(l.inForce, id)
		return nil, errors.Join(err, h.enforce(g, c, l.tightest()))
	}
	return func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if _, ok := l.inForce[id]; !ok {
			return nil
		}
		delete(l.inForce, id)
		return h.enforce(g, c, l.tightest())
	}, nil
}

// limit puts a limit in force, none where value is 0.
func (g hostGroup) limit(c controller, value float64) error {
	switch c {
	case controlCPU:
		return g.limitCPU(value)
	case controlMemory:
		return g.limitMemory(value)
	}
	return fmt.Errorf("no limit by %s", c)
}

// tightest is 0 where none is in force.
func (l *limit) tightest() float64 {
	if l == nil {
		return 0
	}
	tightest := 0.0
	for _, v := range l.inForce {
		if tightest == 0 || v < tightest {
			tightest = v
		}
	}
	return tightest
}

// write writes a value into a control file.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
