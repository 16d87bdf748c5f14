//go:build oldgrpc

package main

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// connect works with grpc-go 1.33 of Debian 12, which needs a codec for newer stubs.
func connect(target string) (*grpc.ClientConn, error) {
	return grpc.Dial(target, grpc.WithInsecure(), grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{})))
}

type codec struct{}

func (codec) Name() string                    { return "proto" }
func (codec) Marshal(m any) ([]byte, error)   { return proto.Marshal(m.(proto.Message)) }
func (codec) Unmarshal(b []byte, m any) error { return proto.Unmarshal(b, m.(proto.Message)) }
