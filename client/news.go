package client

import (
	"maps"

	"github.com/quorumwise/quorumwise/membership"
	"github.com/quorumwise/quorumwise/picker"
)

// news is what picks and moves depend on of the verdicts.
type news struct {
	grades map[string]picker.Grade
	term   uint64
	leader membership.ID
}

func (n news) same(o news) bool {
	return n.term == o.term && n.leader == o.leader && maps.Equal(n.grades, o.grades)
}
