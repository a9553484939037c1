package prober

// Source tells whose word a verdict rests on.
type Source int

const (
	// SourceNone: nobody's yet.
	SourceNone Source = iota
	// SourceShim: the shim beside the member, at an address of its own.
	SourceShim
	// SourceInProcess: the same services on etcd's own port.
	SourceInProcess
	// SourceStock: no shim answers; etcd itself was asked.
	SourceStock
)

// String returns none, shim, in-process or stock, for any other value invalid.
func (s Source) String() string {
	switch s {
	case SourceNone:
		return "none"
	case SourceShim:
		return "shim"
	case SourceInProcess:
		return "in-process"
	case SourceStock:
		return "stock"
	}
	return "invalid"
}
