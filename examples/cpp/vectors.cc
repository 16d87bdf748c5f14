// Checks that this client reproduces the test vectors: vectors FOLDER
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "gatehouse/chain/v1/block.pb.h"
#include "signing.h"

using gatehouse::chain::v1::TransactionBody;
using google::protobuf::Struct;
using google::protobuf::util::JsonStringToMessage;

namespace {

int checks = 0;

void Check(const std::string& name, const std::string& what, const std::string& actual,
           const std::string& expected) {
  checks++;
  if (actual != expected) {
    std::cerr << name << ": the " << what << " is\n  " << actual << "\nand should be\n  " << expected << '\n';
    std::exit(1);
  }
}

Struct Read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  Struct content;
  if (!JsonStringToMessage(text.str(), &content).ok()) {
    std::cerr << path << " cannot be read.\n";
    std::exit(1);
  }
  return content;
}

// An entry of a list in a vector file.
class Case {
 public:
  explicit Case(const Struct& content) : content_(content) {}
  const std::string& operator[](const std::string& name) const { return content_.fields().at(name).string_value(); }
  std::string Json(const std::string& name) const {
    std::string text;
    google::protobuf::util::MessageToJsonString(content_.fields().at(name), &text);
    return text;
  }

 private:
  const Struct& content_;
};

template <typename Function>
void ForEach(const Struct& content, const std::string& list, Function check) {
  for (const auto& value : content.fields().at(list).list_value().values()) {
    check(Case(value.struct_value()));
  }
}

std::string Bytes(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

signing::Key KeyOfSeed(const Case& entry) {
  const auto seed = Bytes(entry["seed"]);
  return signing::Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr,
                                                   reinterpret_cast<const unsigned char*>(seed.data()), seed.size()),
                      &EVP_PKEY_free);
}

void CheckKeys(const Struct& content) {
  ForEach(content, "keys", [](const Case& entry) {
    Check(entry["name"], "public key", signing::PublicKey(KeyOfSeed(entry)), entry["publicKey"]);
    Check(entry["name"], "key of the file", signing::PublicKey(signing::LoadKey(entry["pem"])), entry["publicKey"]);
  });
  ForEach(content, "refused", [](const Case& entry) {
    std::string outcome = "accepted";
    try {
      signing::LoadKey(entry["pem"]);
    } catch (const std::runtime_error&) {
      outcome = "rejected";
    }
    Check(entry["name"], "outcome", outcome, "rejected");
  });
}

void CheckAddresses(const Struct& content) {
  ForEach(content, "addresses", [](const Case& entry) {
    const auto nonce = std::stoull(entry["nonce"]);
    Check(entry["name"], "address", signing::ProgramAddress(entry["owner"], entry["programName"], nonce, entry["salt"]),
          entry["address"]);
  });
}

void CheckIdentities(const Struct& content) {
  ForEach(content, "identities", [](const Case& entry) {
    for (const auto& [name, value] :
         signing::IdentityHeaders(KeyOfSeed(entry), entry["network"], entry["identity"], entry["timestamp"])) {
      Check(entry["name"], name, value, entry[name]);
    }
  });
}

// Encodes with sorted map entries, as in the vectors.
std::string Encode(const TransactionBody& fields) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  fields.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

void CheckTransactions(const Struct& content) {
  const Case all(content);
  Check("genesis", "network", "0x" + signing::Hex(signing::Sha256(all["genesis"])), all["network"]);
  ForEach(content, "transactions", [](const Case& entry) {
    const auto body = Bytes(entry["body"]);
    TransactionBody fields;
    TransactionBody read;
    const bool is_read = JsonStringToMessage(entry.Json("fields"), &fields).ok() && read.ParseFromString(body);
    const bool is_same = is_read && google::protobuf::util::MessageDifferencer::Equals(fields, read);
    Check(entry["name"], "content", is_same ? read.DebugString() : "another", fields.DebugString());
    if (entry["encoding"] == "canonical") {
      Check(entry["name"], "body", signing::Hex(Encode(fields)), entry["body"]);
    }
    const auto message = signing::TransactionMessage(body);
    Check(entry["name"], "message", signing::Hex(message), entry["message"]);
    Check(entry["name"], "signature", signing::Hex(signing::Sign(KeyOfSeed(entry), message)), entry["signature"]);
    Check(entry["name"], "hash", "0x" + signing::Hex(signing::Sha256(body)), entry["hash"]);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: vectors FOLDER\n";
    return 1;
  }
  const std::string folder = argv[1];
  CheckKeys(Read(folder + "/keys.json"));
  CheckAddresses(Read(folder + "/addresses.json"));
  CheckIdentities(Read(folder + "/identities.json"));
  CheckTransactions(Read(folder + "/transactions.json"));
  std::cout << checks << " checks passed\n";
}
