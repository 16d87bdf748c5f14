// Package signing has what a client of Gatehouse signs, and how: keys, program addresses, identity headers, transactions.
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

// LoadKey reads the private key in the content of a file, as `gatehouse keygen --out FILE` writes it.
func LoadKey(content []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("it is not a private key in PEM form")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("it is not a key of Ed25519")
	}
	return key, nil
}

// PublicKey is 0x and 64 hex digits.
func PublicKey(key ed25519.PrivateKey) string {
	return "0x" + hex.EncodeToString(key.Public().(ed25519.PublicKey))
}

// TransactionMessage is what is signed of an encoded TransactionBody. Encode once: what is signed is what is sent.
func TransactionMessage(body []byte) []byte {
	return append([]byte(transactionPrefix), body...)
}

// TransactionHash names a transaction.
func TransactionHash(body []byte) string {
	hash := sha256.Sum256(body)
	return "0x" + hex.EncodeToString(hash[:])
}

// ProgramAddress is where the program is that a transaction of the owner with this nonce makes.
func ProgramAddress(owner, name string, nonce uint64, salt string) string {
	hash := sha256.Sum256([]byte(fmt.Sprintf("%s:%s:%d:%s", owner, name, nonce, salt)))
	return "stor-" + hex.EncodeToString(hash[:])[:40]
}

// IdentityHeaders prove who calls, as pairs of name and value, at a time in milliseconds. Nodes of this network, and no
// others, take them for five minutes.
func IdentityHeaders(key ed25519.PrivateKey, network, identity, timestamp string) []string {
	digest := sha256.Sum256([]byte("gatehouse-identity:" + network + ":" + identity + ":" + timestamp))
	// What is signed is the digest's text, not its bytes.
	signature := "0x" + hex.EncodeToString(ed25519.Sign(key, []byte(hex.EncodeToString(digest[:]))))
	return []string{"identity", identity, "timestamp", timestamp, "network", network, "signature", signature}
}
