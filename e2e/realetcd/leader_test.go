//go:build linux

package realetcd

import "testing"

func TestLeaderIsWhomAMajorityOfVotersNamesAtOneTerm(t *testing.T) {
	for name, tc := range map[string]struct {
		claims []claim
		voters int
		want   uint64
	}{
		"all agree":                         {[]claim{{1, 1, 5, false}, {2, 1, 5, false}, {3, 1, 5, false}}, 3, 1},
		"one has not answered":              {[]claim{{2, 1, 5, false}, {3, 1, 5, false}}, 3, 1},
		"an old leader still names itself":  {[]claim{{1, 1, 5, false}, {2, 2, 6, false}, {3, 2, 6, false}}, 3, 2},
		"only an old leader and its friend": {[]claim{{1, 1, 5, false}, {2, 1, 5, false}, {3, 0, 6, false}}, 5, 0},
		"same leader, terms apart":          {[]claim{{1, 1, 5, false}, {2, 1, 6, false}}, 3, 0},
		"an election":                       {[]claim{{1, 0, 6, false}, {2, 0, 6, false}, {3, 0, 6, false}}, 3, 0},
		"a learner's word does not count":   {[]claim{{1, 1, 5, false}, {4, 1, 5, true}}, 3, 0},
		"nobody answers":                    {nil, 3, 0},
	} {
		if got, _ := elect(tc.claims, tc.voters); got != tc.want {
			t.Errorf("%s: %d; want %d", name, got, tc.want)
		}
	}
}
