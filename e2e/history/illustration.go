package history

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// A picture of more operations than this is not read by anybody, and takes long to
	// draw.
	widest = 240
	// The picture's own search is for the eye: it need not be complete.
	illustrationTime = 3 * time.Second
)

// illustrate draws a group as HTML that needs no network, with what is wrong beside it.
func (m *model) illustrate(calls []*call, wrong []string) []byte {
	m, calls = m.window(calls)
	if len(calls) == 0 {
		return nil
	}
	form := m.porcupine()
	_, info := porcupine.CheckOperationsVerbose(form, operations(calls), illustrationTime)
	notes := make([]porcupine.Annotation, 0, len(wrong))
	first := slices.MinFunc(calls, func(a, b *call) int { return cmp.Compare(a.op.Call, b.op.Call) })
	last := slices.MaxFunc(calls, func(a, b *call) int { return cmp.Compare(a.end, b.end) })
	for _, line := range wrong {
		notes = append(notes, porcupine.Annotation{Tag: "violation", Start: int64(first.op.Call), End: int64(last.end), Description: line, Details: line, BackgroundColor: "#ffd5d5"})
	}
	info.AddAnnotations(notes)
	var page bytes.Buffer
	if err := porcupine.Visualize(form, info, &page); err != nil {
		return []byte("the illustration could not be drawn: " + oneLine(err.Error()))
	}
	return page.Bytes()
}

// window narrows a long group to the operations around the first one at which an order
// cannot be continued. It needs revisions; without them groups are small.
func (m *model) window(calls []*call) (*model, []*call) {
	if len(calls) <= widest || !m.pinned {
		return m, calls
	}
	ordered := byRevision(calls)
	stuck, states := m.walk(ordered)
	from := max(stuck-widest/2, 0)
	some := ordered[from:min(from+widest, len(ordered))]
	narrow := &model{group: m.group, begin: states[from], pinned: true}
	return narrow, slices.SortedStableFunc(slices.Values(some), func(a, b *call) int { return cmp.Compare(a.op.Call, b.op.Call) })
}

// walk goes along calls in order of revision. It returns the first that cannot come
// next, or real time forbids, and the state before each until then.
func (m *model) walk(ordered []*call) (stuck int, states []*state) {
	states = []*state{m.begin}
	var latest time.Duration
	for i, c := range ordered {
		latest = max(latest, c.op.Call) // everything before it in order had been called
		next := m.step(states[i], c)
		if len(next) == 0 || c.end < latest {
			return i, states
		}
		states = append(states, next[0])
	}
	return len(ordered) - 1, states
}
