//! Checks that this client makes what the test vectors say, and prints a transaction as `POST /chain/transactions` takes it.

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

/// An entry of a file, and how many checks there were.
struct Checks(usize);

impl Checks {
    fn check(&mut self, entry: &Value, what: &str, got: &str, wanted: &str) {
        self.0 += 1;
        if got != wanted {
            eprintln!("{}: the {what} is\n  {got}\nand should be\n  {wanted}", text(entry, "name"));
            exit(1);
        }
    }

    fn keys(&mut self, all: &Value) -> Outcome {
        for one in list(all, "keys") {
            self.check(one, "public key", &signing::public_key(&key(one)?)?, text(one, "publicKey"));
            let loaded = signing::load_key(text(one, "pem").as_bytes())?;
            self.check(one, "key of the file", &signing::public_key(&loaded)?, text(one, "publicKey"));
        }
        for one in list(all, "refused") {
            let is_taken = signing::load_key(text(one, "pem").as_bytes()).is_ok();
            self.check(one, "outcome", if is_taken { "taken" } else { "refused" }, "refused");
        }
        Ok(())
    }

    fn addresses(&mut self, all: &Value) -> Outcome {
        for one in list(all, "addresses") {
            let nonce = text(one, "nonce").parse()?;
            let address =
                signing::program_address(text(one, "owner"), text(one, "programName"), nonce, text(one, "salt"));
            self.check(one, "address", &address, text(one, "address"));
        }
        Ok(())
    }

    fn identities(&mut self, all: &Value) -> Outcome {
        for one in list(all, "identities") {
            let (network, identity) = (text(one, "network"), text(one, "identity"));
            let headers = signing::identity_headers(&key(one)?, network, identity, text(one, "timestamp"))?;
            for (name, value) in headers {
                self.check(one, name, &value, text(one, name));
            }
        }
        Ok(())
    }

    fn transactions(&mut self, all: &Value) -> Outcome {
        let named = json!({ "name": "genesis" });
        let network = signing::transaction_hash(text(all, "genesis").as_bytes());
        self.check(&named, "network", &network, text(all, "network"));
        for one in list(all, "transactions") {
            let body = hex::decode(text(one, "body"))?;
            // prost does not read the JSON of protobuf, and has ways of its own to encode lists of enums, as every encoder
            // may: what it reads has to be the same after it was written and read again.
            let fields = TransactionBody::decode(&body[..])?;
            self.check(one, "sender", &fields.sender, text(&one["fields"], "sender"));
            let again = TransactionBody::decode(&fields.encode_to_vec()[..])?;
            self.check(one, "content", &format!("{again:?}"), &format!("{fields:?}"));
            let message = signing::transaction_message(&body);
            self.check(one, "message", &hex::encode(&message), text(one, "message"));
            let signature = signing::sign(&key(one)?, &message)?;
            self.check(one, "signature", &hex::encode(signature), text(one, "signature"));
            self.check(one, "hash", &signing::transaction_hash(&body), text(one, "hash"));
        }
        Ok(())
    }
}

fn list<'a>(all: &'a Value, name: &str) -> &'a [Value] {
    all[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(one: &'a Value, name: &str) -> &'a str {
    one[name].as_str().unwrap_or_default()
}

fn key(one: &Value) -> Result<signing::Key, Box<dyn Error>> {
    Ok(PKey::private_key_from_raw_bytes(&hex::decode(text(one, "seed"))?, Id::ED25519)?)
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
    let made = transaction::create_program(&key, network, now_ms, name, document)?;
    eprintln!("{}", signing::program_address(&signing::public_key(&key)?, name, now_ms, ""));
    let (body, signature) = (encode_block(&made.body), encode_block(&made.signature));
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
