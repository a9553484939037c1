//go:build linux

package suites

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// keep keeps the evidence of a failure where the report is: logs of members, shims and
// applications, and the illustration of a history without an order. The stage is still
// open.
func (p *play) keep(illustration []byte) []report.File {
	if p.opts.Dir == "" {
		return nil
	}
	return keep(filepath.Join(p.opts.Dir, p.sc.Name), illustration, p.logs(), p.opts.Logger)
}

// keep writes the illustration to dir, and copies the logs there. What cannot be kept is
// logged.
func keep(dir string, illustration []byte, logs []report.File, logger *slog.Logger) []report.File {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		logger.Warn("evidence is lost", "error", err)
		return nil
	}
	var files []report.File
	file := func(name string, write func(path string) error) {
		path := filepath.Join(dir, name)
		if err := write(path); err != nil {
			logger.Warn("evidence is lost", "file", name, "error", err)
			return
		}
		files = append(files, report.File{Name: name, Path: path})
	}
	if illustration != nil {
		file("history.html", func(path string) error { return os.WriteFile(path, illustration, 0o644) })
	}
	for _, log := range logs {
		file(log.Name, func(path string) error { return copyFile(log.Path, path) })
	}
	return files
}

// logs lists those that exist.
func (p *play) logs() []report.File {
	var logs []report.File
	add := func(name, path string) {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			logs = append(logs, report.File{Name: name, Path: path})
		}
	}
	for name, a := range p.ran {
		add(fmt.Sprintf("app-%s.log", name), a.Log())
	}
	if p.st == nil || p.st.Cluster == nil {
		return logs
	}
	for _, m := range p.st.Cluster.Members() {
		add(m.Name()+"-etcd.log", m.Log())
		add(m.Name()+"-shim.log", m.ShimLog())
	}
	return logs
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
