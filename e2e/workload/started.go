package workload

import (
	"errors"
	"fmt"
	"strings"
)

// ErrOursAlone says of two applications that ours alone did not start. What the official client
// could do at the same time on the same cluster is no luck, but where raft dropped a proposal.
var ErrOursAlone = errors.New("ours did not start, the control did")

// Started joins the errors of two applications that started at the same time, alike but for
// their client; nil of one that did.
func Started(ours, control error) error {
	if ours != nil && control == nil && !strings.Contains(ours.Error(), droppedText) {
		return fmt.Errorf("%w: %w", ErrOursAlone, ours)
	}
	return errors.Join(ours, control)
}
