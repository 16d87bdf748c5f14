//! Creates a transaction: the body, encoded once, with its signature.

use prost::Message;

use crate::signing::{self, Key};
use crate::stubs::gatehouse::chain::v1::{transaction_body, Transaction, TransactionBody};
use crate::stubs::gatehouse::storage::v1::{program_data, storage_operation};
use crate::stubs::gatehouse::storage::v1::{AccessControl, AccessMode, CreateProgram, ProgramData, StorageOperation};

/// Time until the transaction expires.
const LIFETIME_MS: u64 = 120_000;

/// Creates a program that only its owner may read, at `program_address(sender, name, now_ms, "")`.
pub fn create_program(
    key: &Key,
    network: &str,
    now_ms: u64,
    name: &str,
    document: &str,
) -> Result<Transaction, Box<dyn std::error::Error>> {
    let create = CreateProgram {
        program_name: name.to_string(),
        data: Some(ProgramData { data: Some(program_data::Data::Json(document.to_string())) }),
        access: Some(AccessControl { mode: AccessMode::Owner as i32, ..Default::default() }),
        ..Default::default()
    };
    let operation = StorageOperation { operation: Some(storage_operation::Operation::CreateProgram(create)) };
    let body = TransactionBody {
        sender: signing::public_key(key)?,
        nonce: now_ms,
        timestamp_ms: now_ms as i64,
        network: network.to_string(),
        expires_ms: (now_ms + LIFETIME_MS) as i64,
        operation: Some(transaction_body::Operation::Storage(operation)),
    }
    .encode_to_vec();
    let signature = signing::sign(key, &signing::transaction_message(&body))?;
    Ok(Transaction { body, signature, ..Default::default() })
}
