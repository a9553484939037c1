package healthsvc

import (
	"context"
	"maps"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// In etcd's own process grpc.health.v1 is registered by etcd, and registering it twice ends the
// process. So the services of the contract come in by interceptors; every other name, the empty
// one included, stays etcd's.

// UnaryServerInterceptor answers Check for the names of the contract and adds them to the answer of
// List; everything else goes to the handler untouched. After Stop Check is Unavailable for our names,
// and List is the handler's alone.
func (s *Server) UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		switch req := req.(type) {
		case *healthpb.HealthCheckRequest:
			if info.FullMethod == healthpb.Health_Check_FullMethodName && isService(req.GetService()) {
				return s.Check(ctx, req)
			}
		case *healthpb.HealthListRequest:
			if info.FullMethod == healthpb.Health_List_FullMethodName {
				return s.mergedList(ctx, req, handler)
			}
		}
		return handler(ctx, req)
	}
}

// mergedList adds ours to theirs. A handler from before List existed has nothing to add to, and a
// server of ours that has stopped takes nothing away from it.
func (s *Server) mergedList(ctx context.Context, req *healthpb.HealthListRequest, handler grpc.UnaryHandler) (any, error) {
	theirs, err := handler(ctx, req)
	if err != nil && status.Code(err) != codes.Unimplemented {
		return nil, err
	}
	ours, oursErr := s.List(ctx, req)
	if oursErr != nil {
		return theirs, err
	}
	delete(ours.Statuses, "")
	merged := make(map[string]*healthpb.HealthCheckResponse)
	if list, ok := theirs.(*healthpb.HealthListResponse); ok && err == nil {
		maps.Copy(merged, list.GetStatuses())
	}
	maps.Copy(merged, ours.Statuses)
	return &healthpb.HealthListResponse{Statuses: merged}, nil
}

// StreamServerInterceptor answers Watch for the names of the contract; everything else goes to the
// handler untouched. After Stop Watch is Unavailable for our names.
func (s *Server) StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if info.FullMethod != healthpb.Health_Watch_FullMethodName {
			return handler(srv, stream)
		}
		// The name is in the first message, so it has to be read before we know whose it is.
		req := new(healthpb.HealthCheckRequest)
		if err := stream.RecvMsg(req); err != nil {
			return err
		}
		if !isService(req.GetService()) {
			return handler(srv, &replayedStream{ServerStream: stream, first: req})
		}
		return s.Watch(req, &grpc.GenericServerStream[healthpb.HealthCheckRequest, healthpb.HealthCheckResponse]{ServerStream: stream})
	}
}

// replayedStream gives a handler the first message that was read to find out whose it is.
type replayedStream struct {
	grpc.ServerStream
	first proto.Message // nil once handed on
}

// RecvMsg implements grpc.ServerStream.
func (r *replayedStream) RecvMsg(m any) error {
	if r.first == nil {
		return r.ServerStream.RecvMsg(m)
	}
	dst, ok := m.(*healthpb.HealthCheckRequest)
	if !ok {
		return status.Errorf(codes.Internal, "healthsvc: the handler of %s reads a %T, want a %T", healthpb.Health_Watch_FullMethodName, m, r.first)
	}
	proto.Reset(dst)
	proto.Merge(dst, r.first)
	r.first = nil
	return nil
}
