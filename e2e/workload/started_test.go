package workload

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestOursAloneDidNotStart(t *testing.T) {
	late := fmt.Errorf("watches stand on 1 member of 3: %w", context.DeadlineExceeded)
	dropped := fmt.Errorf("app ours: lease: %w (log: x)", status.Error(codes.Unknown, "raft proposal dropped"))
	for _, row := range []struct {
		name          string
		ours, control error
		alone         bool
	}{
		{"ours", late, nil, true},
		{"the control", nil, late, false},
		{"both", late, late, false},
		{"ours, for what no client can spare its user", dropped, nil, false},
	} {
		err := Started(row.ours, row.control)
		if got := errors.Is(err, ErrOursAlone); got != row.alone {
			t.Errorf("%s: %v says that ours alone did not start: %v, want %v", row.name, err, got, row.alone)
		}
		for _, want := range []error{row.ours, row.control} {
			if want != nil && !errors.Is(err, want) {
				t.Errorf("%s: %v; want %v in it", row.name, err, want)
			}
		}
	}
	if err := Started(nil, nil); err != nil {
		t.Errorf("both have started: %v", err)
	}
}
