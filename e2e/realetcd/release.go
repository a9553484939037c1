//go:build linux

package realetcd

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// release is a version of etcd.
type release struct {
	major, minor int
	patch        int    // anyPatch: the newest one is meant
	pre          string // "rc.1"; "" for a release proper
}

const anyPatch = -1

// oldest is the first minor version whose flags arguments knows.
var oldest = release{major: 3, minor: 5}

// newestKnown stands in for the module proxy where that cannot be asked.
var newestKnown = []release{{3, 5, 35, ""}, {3, 6, 16, ""}, {3, 7, 3, ""}}

var releaseForm = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4})(?:-([0-9A-Za-z.-]{1,40}))?)?$`)

// parseRelease reads 3.6, 3.6.16, v3.6.16 and 3.7.0-rc.1.
func parseRelease(s string) (release, error) {
	parts := releaseForm.FindStringSubmatch(s)
	if parts == nil {
		return release{}, fmt.Errorf("realetcd: %q is no version of etcd: want one such as 3.6 (its newest patch) or 3.6.16", s)
	}
	number := func(s string) int { n, _ := strconv.Atoi(s); return n } // the form holds digits only
	r := release{major: number(parts[1]), minor: number(parts[2]), patch: anyPatch, pre: parts[4]}
	if parts[3] != "" {
		r.patch = number(parts[3])
	}
	if r.older(oldest) || r.major != oldest.major {
		return release{}, fmt.Errorf("realetcd: etcd %s: want %v or a later %d.x", s, oldest.minorName(), oldest.major)
	}
	return r, nil
}

// Supported says why clusters of a version of etcd, such as 3.6.16, cannot be had here; nil:
// they can.
func Supported(version string) error {
	_, err := parseRelease(version)
	return err
}

// String is the version without a v.
func (r release) String() string {
	switch {
	case r.patch == anyPatch:
		return r.minorName()
	case r.pre != "":
		return fmt.Sprintf("%d.%d.%d-%s", r.major, r.minor, r.patch, r.pre)
	default:
		return fmt.Sprintf("%d.%d.%d", r.major, r.minor, r.patch)
	}
}

func (r release) minorName() string { return fmt.Sprintf("%d.%d", r.major, r.minor) }

// older compares minor versions only.
func (r release) older(than release) bool {
	return r.major < than.major || r.major == than.major && r.minor < than.minor
}

func (r release) sameMinor(as release) bool { return r.major == as.major && r.minor == as.minor }

// newestPatch is the highest release proper of the minor version of want.
func newestPatch(want release, known []release) (release, bool) {
	var best release
	found := false
	for _, r := range known {
		if r.pre == "" && r.patch != anyPatch && r.sameMinor(want) && (!found || r.patch > best.patch) {
			best, found = r, true
		}
	}
	return best, found
}

// parseReleases reads the module proxy's list; versions that are none of ours are left out.
func parseReleases(list string) []release {
	var known []release
	for _, field := range strings.Fields(list) {
		if r, err := parseRelease(field); err == nil && r.patch != anyPatch {
			known = append(known, r)
		}
	}
	return known
}

// UnknownVersionError says that etcd has no such version.
type UnknownVersionError struct {
	Version string
	Known   []string // what there is: patches of that minor version, else the newest of each
}

// Error names what there is.
func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("realetcd: there is no etcd %s: there are %s", e.Version, strings.Join(e.Known, ", "))
}

// choices are the versions that somebody who asked for want may have meant.
func choices(want release, known []release) []string {
	var names []string
	for _, r := range known {
		if r.sameMinor(want) {
			names = append(names, r.String())
		}
	}
	if names != nil {
		return names
	}
	for i, r := range known {
		best, ok := newestPatch(r, known)
		if first := slices.IndexFunc(known, r.sameMinor) == i; first && ok {
			names = append(names, best.String())
		}
	}
	return names
}
