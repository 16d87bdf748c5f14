"""What a client of Gatehouse signs, and how: keys, program addresses, identity headers, transactions."""

import hashlib
import time

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

TRANSACTION_PREFIX = b"gatehouse transaction v2\0"


def load_key(pem):
    """The private key in the content of a file, as `gatehouse keygen --out FILE` writes it."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("it is not an Ed25519 key")
    return key


def public_key(key):
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return "0x" + raw.hex()


def program_address(owner, name, nonce, salt=""):
    """Where the program is that a transaction of the owner with this nonce makes."""
    return "stor-" + hashlib.sha256(f"{owner}:{name}:{nonce}:{salt}".encode()).hexdigest()[:40]


def sign_transaction(key, body):
    """Signs an encoded TransactionBody. Encode once: what is signed is what is sent."""
    return key.sign(TRANSACTION_PREFIX + body)


def transaction_hash(body):
    return "0x" + hashlib.sha256(body).hexdigest()


def identity_headers(key, network, identity=None, timestamp=None):
    """Metadata that proves who calls. Nodes of this network, and no others, take it for five minutes."""
    identity = identity or f"ed25519:{public_key(key)}"
    timestamp = timestamp or str(time.time_ns() // 1_000_000)
    text = f"gatehouse-identity:{network}:{identity}:{timestamp}"
    # What is signed is the digest's text, not its bytes.
    signature = key.sign(hashlib.sha256(text.encode()).hexdigest().encode())
    proof = "0x" + signature.hex()
    return [("identity", identity), ("timestamp", timestamp), ("network", network), ("signature", proof)]
