package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/scenario"
)

func TestUnknownFaultIsAnsweredWithTheList(t *testing.T) {
	_, err := findFault("nonsense")
	if err == nil {
		t.Fatal("no error")
	}
	for _, sc := range scenario.All() {
		if !strings.Contains(err.Error(), sc.Name) || !strings.Contains(err.Error(), sc.Does) {
			t.Errorf("scenario %s and what it does are not in the error:\n%v", sc.Name, err)
		}
	}
}

func TestEveryFaultIsFoundAndTheDefaultIsShort(t *testing.T) {
	for _, want := range scenario.All() {
		sc, err := findFault(want.Name)
		if err != nil || sc.Lasts() != want.Lasts()+calmBefore {
			t.Errorf("%s: %v, lasts %v; want %v with calm before it", want.Name, err, sc.Lasts(), want.Lasts()+calmBefore)
		}
	}
	sc, err := findFault(defaultFault)
	if err != nil || sc.Lasts() > ms(17000) {
		t.Errorf("the default: %v, lasts %v; want at most 17 s, or it is no demonstration", err, sc.Lasts())
	}
}

func TestExitStatus(t *testing.T) {
	running := t.Context()
	stopped, cancel := context.WithCancel(running)
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"as promised", running, nil, 0},
		{"not as promised", running, errVerdict, 1},
		{"could not be played", running, errors.New("no free port"), 1},
		{"interrupted", stopped, context.Canceled, interruptedStatus},
	} {
		var said strings.Builder
		if got := exitStatus(c.ctx, c.err, &said); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		// The verdict stands on the screen already.
		if silent := c.err == nil || c.err == errVerdict; silent != (said.Len() == 0) {
			t.Errorf("%s: it says %q", c.name, said.String())
		}
	}
}
