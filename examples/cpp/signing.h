// Signatures of a Gatehouse client with OpenSSL: keys, program addresses, identity headers and transactions.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace signing {

using Key = std::shared_ptr<EVP_PKEY>;

// Reads a private key from the content of a file that `gatehouse keygen --out FILE` has written.
inline Key LoadKey(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> file(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                       &BIO_free);
  const Key key(PEM_read_bio_PrivateKey(file.get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
  if (!key || EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519) {
    throw std::runtime_error("not an Ed25519 private key");
  }
  return key;
}

inline std::string Hex(const std::string& bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

inline std::string Sha256(const std::string& bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return std::string(reinterpret_cast<const char*>(digest), sizeof digest);
}

// Returns the public key as 0x and 64 hex digits.
inline std::string PublicKey(const Key& key) {
  std::string raw(32, '\0');
  std::size_t size = raw.size();
  EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(&raw[0]), &size);
  return "0x" + Hex(raw);
}

// Returns the signature of a message, 64 bytes.
inline std::string Sign(const Key& key, const std::string& message) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  std::string signature(64, '\0');
  std::size_t size = signature.size();
  if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(&signature[0]), &size,
                     reinterpret_cast<const unsigned char*>(message.data()), message.size()) != 1) {
    throw std::runtime_error("the key cannot sign");
  }
  return signature;
}

// Returns the bytes to sign for an encoded TransactionBody. Encode only once: send the same bytes.
inline std::string TransactionMessage(const std::string& body) {
  using namespace std::string_literals;
  return "gatehouse transaction v2\0"s + body;
}

// Returns the address of the program that a transaction of the owner with this nonce creates.
inline std::string ProgramAddress(const std::string& owner, const std::string& name, std::uint64_t nonce,
                                  const std::string& salt = "") {
  return "stor-" + Hex(Sha256(owner + ":" + name + ":" + std::to_string(nonce) + ":" + salt)).substr(0, 40);
}

using Headers = std::vector<std::pair<std::string, std::string>>;

// Returns headers that prove the identity of the caller. The timestamp is in milliseconds. The headers are valid on
// this network for five minutes.
inline Headers IdentityHeaders(const Key& key, const std::string& network, const std::string& identity,
                               const std::string& timestamp) {
  const auto text = "gatehouse-identity:" + network + ":" + identity + ":" + timestamp;
  // Sign the hex text of the digest, not its bytes.
  const auto signature = "0x" + Hex(Sign(key, Hex(Sha256(text))));
  return {{"identity", identity}, {"timestamp", timestamp}, {"network", network}, {"signature", signature}};
}

}  // namespace signing
