//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// longestIdentity is the longest value, in bytes, that is taken for the identity of a mutation.
// Longer ones are ballast and are not filed.
const longestIdentity = 1024

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
	if values := carried(req); len(values) > 0 {
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

// carried are the values of a request's Puts, each once: a transaction may write its identity under
// several keys, or in either of its branches.
func carried(req any) []string {
	var values []string
	switch r := req.(type) {
	case *pb.PutRequest:
		values = carriedByPut(values, r)
	case *pb.TxnRequest:
		values = carriedByTxn(values, r)
	}
	return values
}

func carriedByPut(values []string, r *pb.PutRequest) []string {
	if v := string(r.GetValue()); v != "" && len(v) <= longestIdentity && !slices.Contains(values, v) {
		return append(values, v)
	}
	return values
}

func carriedByTxn(values []string, r *pb.TxnRequest) []string {
	for _, op := range slices.Concat(r.GetSuccess(), r.GetFailure()) {
		if put := op.GetRequestPut(); put != nil {
			values = carriedByPut(values, put)
		}
		if txn := op.GetRequestTxn(); txn != nil { // etcd limits the depth by the size of a request
			values = carriedByTxn(values, txn)
		}
	}
	return values
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
