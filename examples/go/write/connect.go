//go:build !oldgrpc

package main

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// connect opens a channel without TLS. For TLS, use credentials.NewClientTLSFromFile("roots.pem", "").
func connect(target string) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
}
