// Creates a storage program, waits for its block, and reads it back: write HOST:PORT KEYFILE NAME JSON
package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"example.com/client/signing"
	chainv1 "gatehouse.example/contract/chain/v1"
	storagev1 "gatehouse.example/contract/storage/v1"
)

const lifetime = 2 * time.Minute

// details returns the reason of an error, and the time until a retry may succeed; 0 if it cannot.
func details(err error) (reason string, wait time.Duration) {
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			reason = detail.GetReason()
		case *errdetails.RetryInfo:
			wait = time.Duration(detail.GetRetryDelay().GetSeconds()) * time.Second
		}
	}
	code := status.Code(err)
	if reason == "" && (code == codes.Unavailable || code == codes.DeadlineExceeded) {
		wait = time.Second // Not from an rpc: the connection is lost, or the response is late.
	}
	return reason, wait
}

// call retries a method until it succeeds. Reads and the submission of one transaction may be repeated.
func call(ctx context.Context, method func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := method(attempt)
		cancel()
		if err == nil {
			return nil
		}
		reason, wait := details(err)
		if wait == 0 || ctx.Err() != nil {
			return fmt.Errorf("%s: %s", reason, status.Convert(err).Message())
		}
		time.Sleep(wait)
	}
}

// waitFor waits until a block includes the transaction, and returns its number.
func waitFor(ctx context.Context, chain chainv1.ChainServiceClient, hash string) (uint64, error) {
	for ctx.Err() == nil {
		var state *chainv1.GetTransactionResponse
		err := call(ctx, func(ctx context.Context) (err error) {
			state, err = chain.GetTransaction(ctx, &chainv1.GetTransactionRequest{Hash: hash})
			return err
		})
		switch {
		case err != nil:
			return 0, err
		case state.Status == chainv1.TransactionStatus_TRANSACTION_STATUS_INCLUDED:
			return state.GetBlockNumber(), nil
		case state.Status == chainv1.TransactionStatus_TRANSACTION_STATUS_REJECTED:
			return 0, errors.New("rejected: " + state.GetReason())
		}
		time.Sleep(250 * time.Millisecond)
	}
	return 0, errors.New("still pending: " + hash)
}

func write(target string, key ed25519.PrivateKey, name, document string) error {
	conn, err := connect(target)
	if err != nil {
		return err
	}
	defer conn.Close()
	chain := chainv1.NewChainServiceClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), lifetime+10*time.Second)
	defer cancel()

	var network string // In a real client, use a constant for the network.
	if err := call(ctx, func(ctx context.Context) error {
		head, err := chain.GetHead(ctx, &chainv1.GetHeadRequest{})
		network = head.GetGenesisHash()
		return err
	}); err != nil {
		return err
	}

	now := time.Now()
	nonce := uint64(now.UnixMilli())
	create := &storagev1.CreateProgram{
		ProgramName: name,
		Data:        &storagev1.ProgramData{Data: &storagev1.ProgramData_Json{Json: document}},
		Access:      &storagev1.AccessControl{Mode: storagev1.AccessMode_ACCESS_MODE_OWNER},
	}
	body, err := proto.Marshal(&chainv1.TransactionBody{
		Sender:      signing.PublicKey(key),
		Nonce:       nonce,
		TimestampMs: now.UnixMilli(),
		Network:     network,
		ExpiresMs:   now.Add(lifetime).UnixMilli(),
		Operation: &chainv1.TransactionBody_Storage{Storage: &storagev1.StorageOperation{
			Operation: &storagev1.StorageOperation_CreateProgram{CreateProgram: create},
		}},
	})
	if err != nil {
		return err
	}
	signature := ed25519.Sign(key, signing.TransactionMessage(body))
	request := &chainv1.SubmitTransactionRequest{Transaction: &chainv1.Transaction{Body: body, Signature: signature}}
	if err := call(ctx, func(ctx context.Context) error {
		_, err := chain.SubmitTransaction(ctx, request)
		return err
	}); err != nil {
		return err
	}
	block, err := waitFor(ctx, chain, signing.TransactionHash(body))
	if err != nil {
		return err
	}
	fmt.Println("block    ", block)

	address := signing.ProgramAddress(signing.PublicKey(key), name, nonce, "")
	identity := "ed25519:" + signing.PublicKey(key)
	proof := signing.IdentityHeaders(key, network, identity, fmt.Sprint(time.Now().UnixMilli()))
	var program *storagev1.GetProgramResponse
	if err := call(metadata.AppendToOutgoingContext(ctx, proof...), func(ctx context.Context) (err error) {
		read := &storagev1.GetProgramRequest{StorageAddress: address}
		program, err = storagev1.NewStorageServiceClient(conn).GetProgram(ctx, read)
		return err
	}); err != nil {
		return err
	}
	fmt.Println("program  ", address)
	fmt.Println("data     ", program.GetData())
	return nil
}

func main() {
	if len(os.Args) != 5 {
		fail(errors.New("usage: write HOST:PORT KEYFILE NAME JSON"))
	}
	content, err := os.ReadFile(os.Args[2])
	if err != nil {
		fail(err)
	}
	key, err := signing.LoadKey(content)
	if err != nil {
		fail(err)
	}
	if err := write(os.Args[1], key, os.Args[3], os.Args[4]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
