package prober

// Endpoint is one member as a client reaches it.
type Endpoint struct {
	// Address of etcd's client port, as gRPC dials it: "host:port", "unix:path".
	// It is the endpoint's key.
	Address string
	// ServerName is the authority of the connections, and the name that the
	// certificate has to bear. Empty: the address's own.
	ServerName string
	// Shim is the address of the shim beside the member; empty: none is beside it. A shim in
	// etcd's own process is found at Address either way.
	Shim string
}
