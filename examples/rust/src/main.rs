//! Checks that this client reproduces the test vectors, and prints a transaction for `POST /chain/transactions`.

mod signing;
#[allow(dead_code, clippy::all)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}
mod transaction;

use std::error::Error;
use std::process::exit;

use openssl::base64::encode_block;
use openssl::pkey::{Id, PKey};
use prost::Message;
use serde_json::{json, Value};
use stubs::gatehouse::chain::v1::TransactionBody;

type Outcome = Result<(), Box<dyn Error>>;

/// The number of checks so far.
struct Checks(usize);

impl Checks {
    fn check(&mut self, entry: &Value, what: &str, actual: &str, expected: &str) {
        self.0 += 1;
        if actual != expected {
            eprintln!("{}: the {what} is\n  {actual}\nand should be\n  {expected}", text(entry, "name"));
            exit(1);
        }
    }

    fn keys(&mut self, all: &Value) -> Outcome {
        for entry in list(all, "keys") {
            self.check(entry, "public key", &signing::public_key(&key(entry)?)?, text(entry, "publicKey"));
            let loaded = signing::load_key(text(entry, "pem").as_bytes())?;
            self.check(entry, "key of the file", &signing::public_key(&loaded)?, text(entry, "publicKey"));
        }
        for entry in list(all, "refused") {
            let is_accepted = signing::load_key(text(entry, "pem").as_bytes()).is_ok();
            self.check(entry, "outcome", if is_accepted { "accepted" } else { "rejected" }, "rejected");
        }
        Ok(())
    }

    fn addresses(&mut self, all: &Value) -> Outcome {
        for entry in list(all, "addresses") {
            let nonce = text(entry, "nonce").parse()?;
            let address =
                signing::program_address(text(entry, "owner"), text(entry, "programName"), nonce, text(entry, "salt"));
            self.check(entry, "address", &address, text(entry, "address"));
        }
        Ok(())
    }

    fn identities(&mut self, all: &Value) -> Outcome {
        for entry in list(all, "identities") {
            let (network, identity) = (text(entry, "network"), text(entry, "identity"));
            let headers = signing::identity_headers(&key(entry)?, network, identity, text(entry, "timestamp"))?;
            for (name, value) in headers {
                self.check(entry, name, &value, text(entry, name));
            }
        }
        Ok(())
    }

    fn transactions(&mut self, all: &Value) -> Outcome {
        let genesis = json!({ "name": "genesis" });
        let network = signing::transaction_hash(text(all, "genesis").as_bytes());
        self.check(&genesis, "network", &network, text(all, "network"));
        for entry in list(all, "transactions") {
            let body = hex::decode(text(entry, "body"))?;
            // prost cannot read protobuf JSON, and may encode lists of enums differently. So the decoded message must
            // be equal after it is encoded and decoded again.
            let fields = TransactionBody::decode(&body[..])?;
            self.check(entry, "sender", &fields.sender, text(&entry["fields"], "sender"));
            let again = TransactionBody::decode(&fields.encode_to_vec()[..])?;
            self.check(entry, "content", &format!("{again:?}"), &format!("{fields:?}"));
            let message = signing::transaction_message(&body);
            self.check(entry, "message", &hex::encode(&message), text(entry, "message"));
            let signature = signing::sign(&key(entry)?, &message)?;
            self.check(entry, "signature", &hex::encode(signature), text(entry, "signature"));
            self.check(entry, "hash", &signing::transaction_hash(&body), text(entry, "hash"));
        }
        Ok(())
    }
}

fn list<'a>(all: &'a Value, name: &str) -> &'a [Value] {
    all[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(entry: &'a Value, name: &str) -> &'a str {
    entry[name].as_str().unwrap_or_default()
}

fn key(entry: &Value) -> Result<signing::Key, Box<dyn Error>> {
    Ok(PKey::private_key_from_raw_bytes(&hex::decode(text(entry, "seed"))?, Id::ED25519)?)
}

fn check_vectors(folder: &str) -> Outcome {
    let read = |name: &str| -> Result<Value, Box<dyn Error>> {
        Ok(serde_json::from_str(&std::fs::read_to_string(format!("{folder}/{name}.json"))?)?)
    };
    let mut checks = Checks(0);
    checks.keys(&read("keys")?)?;
    checks.addresses(&read("addresses")?)?;
    checks.identities(&read("identities")?)?;
    checks.transactions(&read("transactions")?)?;
    println!("{} checks passed", checks.0);
    Ok(())
}

fn print_transaction(network: &str, key_file: &str, name: &str, document: &str) -> Outcome {
    let key = signing::load_key(&std::fs::read(key_file)?)?;
    let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis() as u64;
    let created = transaction::create_program(&key, network, now_ms, name, document)?;
    eprintln!("{}", signing::program_address(&signing::public_key(&key)?, name, now_ms, ""));
    let (body, signature) = (encode_block(&created.body), encode_block(&created.signature));
    println!("{}", json!({ "transaction": { "body": body, "signature": signature } }));
    Ok(())
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["vectors", folder] => check_vectors(folder),
        ["transaction", network, key_file, name, document] => print_transaction(network, key_file, name, document),
        _ => {
            eprintln!("usage: gatehouse-client vectors FOLDER | transaction NETWORK KEYFILE NAME JSON");
            exit(1)
        }
    }
}
