//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// arrivals files the values that mutations carry, one line each, before etcd handles them. It is a
// file, because what a killed member has received must count too.
type arrivals struct {
	mu   sync.Mutex
	file *os.File
}

func openArrivals(path string) (*arrivals, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return &arrivals{file: file}, err
}

func (a *arrivals) close() { a.file.Close() }

func (a *arrivals) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if values := workload.Carried(req); len(values) > 0 {
		if err := a.add(values); err != nil {
			return nil, fmt.Errorf("file the arrival of a mutation: %w", err) // counts that lack one are worse than a failed call
		}
	}
	return handler(ctx, req)
}

func (a *arrivals) add(values []string) error {
	var lines []byte
	for _, v := range values {
		lines = append(strconv.AppendQuote(lines, v), '\n')
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.file.Write(lines)
	return err
}

// countArrivals adds what a file holds. A member that never ran has none.
func countArrivals(counts map[string]int, path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("realetcd: count mutations: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		quoted, whole := strings.CutSuffix(line, "\n")
		value, err := strconv.Unquote(quoted)
		if !whole { // being written
			continue
		}
		if err != nil {
			return fmt.Errorf("realetcd: count mutations: %s holds the line %.100q: %w", path, line, err)
		}
		counts[value]++
	}
	return nil
}
