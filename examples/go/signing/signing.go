// Package signing has the signatures of a Gatehouse client: keys, program addresses, identity headers and transactions.
package signing

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

const transactionPrefix = "gatehouse transaction v2\x00"

// LoadKey reads a private key from the content of a file that `gatehouse keygen --out FILE` has written.
func LoadKey(content []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("not a private key in PEM form")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("not an Ed25519 key")
	}
	return key, nil
}

// PublicKey returns 0x and 64 hex digits.
func PublicKey(key ed25519.PrivateKey) string {
	return "0x" + hex.EncodeToString(key.Public().(ed25519.PublicKey))
}

// TransactionMessage returns the bytes to sign for an encoded TransactionBody. Encode only once: send the same bytes.
func TransactionMessage(body []byte) []byte {
	return append([]byte(transactionPrefix), body...)
}

// TransactionHash returns the hash that identifies a transaction.
func TransactionHash(body []byte) string {
	hash := sha256.Sum256(body)
	return "0x" + hex.EncodeToString(hash[:])
}

// ProgramAddress returns the address of the program that a transaction of the owner with this nonce creates.
func ProgramAddress(owner, name string, nonce uint64, salt string) string {
	hash := sha256.Sum256([]byte(fmt.Sprintf("%s:%s:%d:%s", owner, name, nonce, salt)))
	return "stor-" + hex.EncodeToString(hash[:])[:40]
}

// IdentityHeaders returns headers that prove the identity of the caller, as pairs of name and value. The timestamp is
// in milliseconds. The headers are valid on this network for five minutes.
func IdentityHeaders(key ed25519.PrivateKey, network, identity, timestamp string) []string {
	digest := sha256.Sum256([]byte("gatehouse-identity:" + network + ":" + identity + ":" + timestamp))
	// Sign the hex text of the digest, not its bytes.
	signature := "0x" + hex.EncodeToString(ed25519.Sign(key, []byte(hex.EncodeToString(digest[:]))))
	return []string{"identity", identity, "timestamp", timestamp, "network", network, "signature", signature}
}
