// Package picker is the gRPC load-balancing policy "quorumwise": round robin
// over the endpoints of the best grade.
//
// It is built of gRPC's own parts, as round_robin is: one connection to each
// endpoint, all of them open. On top it does two things. It chooses among the
// connected endpoints by a [Grade] that it is told, and it files every call in
// flight under the endpoint that the call was picked for, so that the calls on
// an endpoint can be found and ended. It knows nothing of etcd, and nothing of
// how grades are found.
//
// A [Hub] is the handle of one client:
//
//	hub := picker.NewHub()
//	hub.SetMain(addresses)
//	conn, err := grpc.NewClient(target,
//		grpc.WithDisableServiceConfig(), // else a resolver's own policy wins
//		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":`+hub.LoadBalancingConfig()+`}`))
//
// An interceptor brackets each call with [Hub.Begin] and [Call.Finish]. Calls
// without are balanced but not filed.
//
// # Choice
//
// Connected Healthy endpoints, else Unknown ones. Where neither is connected but
// a Healthy one is being connected, calls wait for that attempt. Else the
// connected Suspect ones, else the Unhealthy ones; Parked ones only when all are. With no
// grades at all this is exactly round_robin, and an endpoint that is alone is
// used whatever its grade. Streams go to the endpoint with the fewest as soon as
// any endpoint is Healthy.
//
// That an endpoint is not chosen any more ends nothing on it: gRPC closes
// connections gracefully, and a stream may live for days. [Call.End] is what
// moves a call.
//
// # What is guaranteed
//
// Everything may be used concurrently. When [Hub.SetGrades] returns, every new
// pick obeys it, calls that waited have been woken, and each call that was picked
// before is listed by [Hub.Calls]: ending those leaves none behind. After
// [Call.End] a call is not picked again, not even by gRPC's own retry.
//
// The package has one goroutine for each hub, which calls the function given to
// [Hub.OnChange], from the first OnChange until [Hub.Close] has returned.
//
// # What may not be assumed
//
// Calls is a copy: calls on it may be over by the time they are looked at.
// Endpoints is empty while gRPC has the connection idle (30 minutes without a
// call) or not yet in use. [Call.Sent] errs towards true.
//
// Connections that are not the main one (see [Hub.SetMain]), and all of them once
// the hub is closed, are plain round robin; their calls can be ended but are not
// listed. A service config that names no living hub gives the same; one that is
// not of the right form is refused by grpc.NewClient.
package picker
