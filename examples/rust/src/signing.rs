//! Signatures of a Gatehouse client with OpenSSL: keys, program addresses, identity headers and transactions.

use openssl::error::ErrorStack;
use openssl::pkey::{Id, PKey, Private};
use openssl::sha::sha256;
use openssl::sign::Signer;

pub type Key = PKey<Private>;

const TRANSACTION_PREFIX: &[u8] = b"gatehouse transaction v2\0";

/// Reads a private key from the content of a file that `gatehouse keygen --out FILE` has written.
pub fn load_key(pem: &[u8]) -> Result<Key, String> {
    let key = PKey::private_key_from_pem(pem).map_err(|error| error.to_string())?;
    if key.id() != Id::ED25519 {
        return Err("not an Ed25519 key".to_string());
    }
    Ok(key)
}

/// Returns the public key as 0x and 64 hex digits.
pub fn public_key(key: &Key) -> Result<String, ErrorStack> {
    Ok(format!("0x{}", hex::encode(key.raw_public_key()?)))
}

/// Returns the signature of a message, 64 bytes.
pub fn sign(key: &Key, message: &[u8]) -> Result<Vec<u8>, ErrorStack> {
    Signer::new_without_digest(key)?.sign_oneshot_to_vec(message)
}

/// Returns the bytes to sign for an encoded TransactionBody. Encode only once: send the same bytes.
pub fn transaction_message(body: &[u8]) -> Vec<u8> {
    [TRANSACTION_PREFIX, body].concat()
}

/// Returns the hash that identifies a transaction.
pub fn transaction_hash(body: &[u8]) -> String {
    format!("0x{}", hex::encode(sha256(body)))
}

/// Returns the address of the program that a transaction of the owner with this nonce creates.
pub fn program_address(owner: &str, name: &str, nonce: u64, salt: &str) -> String {
    let hash = hex::encode(sha256(format!("{owner}:{name}:{nonce}:{salt}").as_bytes()));
    format!("stor-{}", &hash[..40])
}

/// Returns headers that prove the identity of the caller. The timestamp is in milliseconds. The headers are valid on
/// this network for five minutes.
pub fn identity_headers(
    key: &Key,
    network: &str,
    identity: &str,
    timestamp: &str,
) -> Result<Vec<(&'static str, String)>, ErrorStack> {
    let text = format!("gatehouse-identity:{network}:{identity}:{timestamp}");
    // Sign the hex text of the digest, not its bytes.
    let signature = sign(key, hex::encode(sha256(text.as_bytes())).as_bytes())?;
    Ok(vec![
        ("identity", identity.to_string()),
        ("timestamp", timestamp.to_string()),
        ("network", network.to_string()),
        ("signature", format!("0x{}", hex::encode(signature))),
    ])
}
