//go:build linux

package realetcd

import (
	"context"
	"testing"

	"github.com/quorumwise/quorumwise/healthsvc"
)

func TestStateFollowsFromTheWeakestEvidence(t *testing.T) {
	leading := claim{member: 1, leader: 1, term: 3}
	following := claim{member: 1, leader: 2, term: 3}
	for name, tc := range map[string]struct {
		said        claim
		mute, proof error
		want        State
	}{
		"leads and proves it":                {leading, nil, nil, Leader},
		"names itself leader, proves it not": {leading, nil, context.DeadlineExceeded, NoQuorum},
		"follows and proves it":              {following, nil, nil, Quorum},
		"follows, cut off just now":          {following, nil, context.DeadlineExceeded, NoQuorum},
		"admits that it has no leader":       {claim{member: 1, term: 4}, nil, errNotAsked, NoLeader},
		"has no vote":                        {claim{member: 1, leader: 2, learner: true}, nil, errNotAsked, Learner},
		"says nothing":                       {claim{}, context.DeadlineExceeded, errNotAsked, Mute},
	} {
		if got := judge(tc.said, tc.mute, tc.proof); got != tc.want {
			t.Errorf("%s: %s; want %s", name, got, tc.want)
		}
	}
}

func TestWordOfAShimCarriesItsReason(t *testing.T) {
	for want, n := range map[string]healthsvc.News{
		"serving":                 {Status: healthsvc.StatusServing},
		"not-serving (no-quorum)": {Status: healthsvc.StatusNotServing, Reason: healthsvc.ReasonNoQuorum},
		"silent":                  {},
		"none":                    {Status: healthsvc.StatusAbsent},
	} {
		if got := shimWord(n); got != want {
			t.Errorf("shimWord(%v) = %q; want %q", n.Status, got, want)
		}
	}
}
