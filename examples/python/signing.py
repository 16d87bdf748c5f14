"""Signatures of a Gatehouse client: keys, program addresses, identity headers and transactions."""

import hashlib
import time

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

TRANSACTION_PREFIX = b"gatehouse transaction v2\0"


def load_key(pem):
    """Reads a private key from the content of a file that `gatehouse keygen --out FILE` has written."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("not an Ed25519 key")
    return key


def public_key(key):
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return "0x" + raw.hex()


def program_address(owner, name, nonce, salt=""):
    """Returns the address of the program that a transaction of the owner with this nonce creates."""
    return "stor-" + hashlib.sha256(f"{owner}:{name}:{nonce}:{salt}".encode()).hexdigest()[:40]


def sign_transaction(key, body):
    """Signs an encoded TransactionBody. Encode only once: send the same bytes that are signed."""
    return key.sign(TRANSACTION_PREFIX + body)


def transaction_hash(body):
    return "0x" + hashlib.sha256(body).hexdigest()


def identity_headers(key, network, identity=None, timestamp=None):
    """Returns headers that prove the identity of the caller. They are valid on this network for five minutes."""
    identity = identity or f"ed25519:{public_key(key)}"
    timestamp = timestamp or str(time.time_ns() // 1_000_000)
    text = f"gatehouse-identity:{network}:{identity}:{timestamp}"
    # Sign the hex text of the digest, not its bytes.
    signature = key.sign(hashlib.sha256(text.encode()).hexdigest().encode())
    proof = "0x" + signature.hex()
    return [("identity", identity), ("timestamp", timestamp), ("network", network), ("signature", proof)]
