// Checks that this client reproduces the test vectors: vectors FOLDER
package main

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"example.com/client/signing"
	chainv1 "gatehouse.example/contract/chain/v1"
)

// entry has the members of an entry of any file.
type entry struct {
	Name, Seed, PublicKey, Pem               string
	Owner, ProgramName, Nonce, Salt, Address string
	Identity, Timestamp, Network             string
	Encoding, Body, Message, Signature, Hash string
	Fields                                   json.RawMessage
}

type content struct {
	Genesis, Network                                   string
	Keys, Addresses, Identities, Transactions, Refused []entry
}

var checks int

func check(name, what, actual, expected string) {
	checks++
	if actual != expected {
		fmt.Fprintf(os.Stderr, "%s: the %s is\n  %s\nand should be\n  %s\n", name, what, actual, expected)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func read(name string) (all content) {
	text := must(os.ReadFile(filepath.Join(os.Args[1], name+".json")))
	must(0, json.Unmarshal(text, &all))
	return all
}

func (e entry) key() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(must(hex.DecodeString(e.Seed)))
}

func checkKeys(all content) {
	for _, e := range all.Keys {
		check(e.Name, "public key", signing.PublicKey(e.key()), e.PublicKey)
		check(e.Name, "key of the file", signing.PublicKey(must(signing.LoadKey([]byte(e.Pem)))), e.PublicKey)
	}
	for _, e := range all.Refused {
		_, err := signing.LoadKey([]byte(e.Pem))
		check(e.Name, "outcome", fmt.Sprint("rejected: ", err != nil), "rejected: true")
	}
}

func checkAddresses(all content) {
	for _, e := range all.Addresses {
		nonce := must(strconv.ParseUint(e.Nonce, 10, 64))
		check(e.Name, "address", signing.ProgramAddress(e.Owner, e.ProgramName, nonce, e.Salt), e.Address)
	}
}

func checkIdentities(all content) {
	for _, e := range all.Identities {
		expected := map[string]string{
			"identity": e.Identity, "timestamp": e.Timestamp, "network": e.Network, "signature": e.Signature,
		}
		headers := signing.IdentityHeaders(e.key(), e.Network, e.Identity, e.Timestamp)
		for i := 0; i < len(headers); i += 2 {
			check(e.Name, headers[i], headers[i+1], expected[headers[i]])
		}
	}
}

func checkTransactions(all content) {
	check("genesis", "network", signing.TransactionHash([]byte(all.Genesis)), all.Network)
	for _, e := range all.Transactions {
		var fields, decoded chainv1.TransactionBody
		must(0, protojson.Unmarshal(e.Fields, &fields))
		body := must(hex.DecodeString(e.Body))
		must(0, proto.Unmarshal(body, &decoded))
		if !proto.Equal(&fields, &decoded) {
			check(e.Name, "content", prototext.Format(&decoded), prototext.Format(&fields))
		}
		if e.Encoding == "canonical" {
			// Deterministic encoding sorts map entries, as in the vectors.
			encoded := must(proto.MarshalOptions{Deterministic: true}.Marshal(&fields))
			check(e.Name, "body", hex.EncodeToString(encoded), e.Body)
		}
		message := signing.TransactionMessage(body)
		check(e.Name, "message", hex.EncodeToString(message), e.Message)
		check(e.Name, "signature", hex.EncodeToString(ed25519.Sign(e.key(), message)), e.Signature)
		check(e.Name, "hash", signing.TransactionHash(body), e.Hash)
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vectors FOLDER")
		os.Exit(1)
	}
	checkKeys(read("keys"))
	checkAddresses(read("addresses"))
	checkIdentities(read("identities"))
	checkTransactions(read("transactions"))
	fmt.Println(checks, "checks passed")
}
