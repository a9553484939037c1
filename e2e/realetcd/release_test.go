//go:build linux

package realetcd

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestVersionIsReadInTheFormsPeopleWriteIt(t *testing.T) {
	for text, want := range map[string]string{
		"3.6": "3.6", "3.6.16": "3.6.16", "v3.7.3": "3.7.3", "3.7.0-rc.1": "3.7.0-rc.1", "3.10.0": "3.10.0",
	} {
		if r, err := parseRelease(text); err != nil || r.String() != want {
			t.Errorf("parseRelease(%q) = %v, %v; want %s", text, r, err, want)
		}
	}
	for _, text := range []string{"", "latest", "3", "3.6.x", "3.4", "3.4.31", "2.3.8", "4.0.0", "3.6-rc.1", "3.6.16 ", "../3.6", "3.6.1/..", "99999999999999999999.1"} {
		if r, err := parseRelease(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("parseRelease(%q) = %v, %v; want an error that repeats it: it becomes a file's name", text, r, err)
		}
	}
}

func TestNewestPatchIsByNumberAndNoCandidate(t *testing.T) {
	known := parseReleases("v3.4.9 v3.5.9 v3.5.35 v3.5.4 v3.6.0-rc.3 v3.6.16 v3.6.2 v3.7.0-alpha.0 something")
	for minor, want := range map[string]string{"3.5": "3.5.35", "3.6": "3.6.16"} {
		r, _ := parseRelease(minor)
		if got, ok := newestPatch(r, known); !ok || got.String() != want {
			t.Errorf("newestPatch(%s) = %v, %v; want %s", minor, got, ok, want)
		}
	}
	r, _ := parseRelease("3.7")
	if got, ok := newestPatch(r, known); ok {
		t.Errorf("newestPatch(3.7) = %v; want none, there is only a release candidate", got)
	}
}

func TestChoicesAreWhatMayHaveBeenMeant(t *testing.T) {
	known := parseReleases("v3.5.1 v3.5.2 v3.6.0 v3.6.1-rc.0")
	for asked, want := range map[string][]string{
		"3.5.9": {"3.5.1", "3.5.2"},
		"3.9":   {"3.5.2", "3.6.0"},
	} {
		r, _ := parseRelease(asked)
		if got := choices(r, known); !slices.Equal(got, want) {
			t.Errorf("choices(%s) = %v; want %v", asked, got, want)
		}
	}
}

func TestEveryMinorVersionHasAFallback(t *testing.T) {
	for _, minor := range []string{"3.5", "3.6", "3.7"} {
		r, _ := parseRelease(minor)
		if _, ok := newestPatch(r, newestKnown); !ok {
			t.Errorf("no fallback for %s: without a network it cannot be played", minor)
		}
	}
}

func FuzzVersion(f *testing.F) {
	for _, text := range []string{"3.6", "v3.6.16", "3.7.0-rc.1", "3.6.0-../../x", "3.6.0-a/b", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRelease(text)
		if err != nil {
			return
		}
		again, err := parseRelease(r.String())
		if err != nil || again != r {
			t.Errorf("parseRelease(%q) is %v, and that is %v, %v", text, r, again, err)
		}
		if name := r.String(); name != filepath.Base(name) {
			t.Errorf("parseRelease(%q) = %q; want what can be a file's name", text, name)
		}
	})
}
