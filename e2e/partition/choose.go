//go:build linux

package main

import (
	"path"
	"slices"
	"strings"

	"github.com/quorumwise/quorumwise/e2e/suites"
)

// everything is the pattern that fits all scenarios.
const everything = "all"

// choose lists the scenarios that fit any of the patterns, in the order of the catalog;
// without a pattern the quick ones.
func choose(catalog []suites.Scenario, patterns []string) ([]suites.Scenario, error) {
	if len(patterns) == 0 {
		return slices.DeleteFunc(slices.Clone(catalog), func(sc suites.Scenario) bool { return !sc.Quick }), nil
	}
	chosen := make([]bool, len(catalog))
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, usagef("pattern %q is no glob: a [ has no ]", p)
		}
		fit := fitting(catalog, p)
		if len(fit) == 0 {
			return nil, usagef("no scenario fits %q. Suites are: %s. The command list shows every scenario", p, strings.Join(suiteNames(catalog), ", "))
		}
		for _, i := range fit {
			chosen[i] = true
		}
	}
	var scs []suites.Scenario
	for i, sc := range catalog {
		if chosen[i] {
			scs = append(scs, sc)
		}
	}
	return scs, nil
}

// fitting lists which scenarios a pattern means. A whole name or suite means nothing
// else, nor does a fault as the table of figures names it: the name of one scenario may be
// a part of another's.
func fitting(catalog []suites.Scenario, pattern string) []int {
	for _, fits := range []func(string, suites.Scenario) bool{isName, isFault, isPart} {
		var fit []int
		for i, sc := range catalog {
			if fits(pattern, sc) {
				fit = append(fit, i)
			}
		}
		if len(fit) > 0 {
			return fit
		}
	}
	return nil
}

func isName(pattern string, sc suites.Scenario) bool {
	return pattern == everything || pattern == sc.Name || pattern == sc.Suite || pattern == wholeName(sc)
}

func isFault(pattern string, sc suites.Scenario) bool { return pattern == sc.Fault }

func isPart(pattern string, sc suites.Scenario) bool {
	name, _ := path.Match(pattern, sc.Name) // the form is checked already
	whole, _ := path.Match(pattern, wholeName(sc))
	return name || whole || pattern != "" && strings.Contains(wholeName(sc), pattern)
}

func wholeName(sc suites.Scenario) string { return sc.Suite + "/" + sc.Name }

func suiteNames(catalog []suites.Scenario) []string {
	var names []string
	for _, sc := range catalog {
		if !slices.Contains(names, sc.Suite) {
			names = append(names, sc.Suite)
		}
	}
	return names
}
