// Creates a storage program, waits for its block, and reads it back.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "details.h"
#include "gatehouse/chain/v1/chain.grpc.pb.h"
#include "gatehouse/storage/v1/storage.grpc.pb.h"
#include "signing.h"

namespace chain = gatehouse::chain::v1;
namespace storage = gatehouse::storage::v1;
using Clock = std::chrono::system_clock;
using std::chrono::seconds;

namespace {

constexpr seconds lifetime(120);

[[noreturn]] void Fail(const std::string& message) {
  std::cerr << message << '\n';
  std::exit(1);
}

// Retries a call until it succeeds. Reads and the submission of one transaction may be repeated.
void Call(Clock::time_point until, const std::function<grpc::Status(grpc::ClientContext&)>& method) {
  for (;;) {
    grpc::ClientContext context;
    context.set_deadline(Clock::now() + seconds(10));
    const auto status = method(context);
    if (status.ok()) {
      return;
    }
    const auto [reason, wait] = Details(status);
    if (!wait || Clock::now() + *wait > until) {
      Fail(reason + ": " + status.error_message());
    }
    std::this_thread::sleep_for(*wait);
  }
}

// Waits until a block includes the transaction, and returns its number.
std::uint64_t WaitFor(chain::ChainService::Stub& stub, const std::string& hash, Clock::time_point until) {
  chain::GetTransactionRequest request;
  request.set_hash(hash);
  for (;;) {
    chain::GetTransactionResponse state;
    Call(until, [&](grpc::ClientContext& context) { return stub.GetTransaction(&context, request, &state); });
    if (state.status() == chain::TRANSACTION_STATUS_INCLUDED) {
      return state.block_number();
    }
    if (state.status() == chain::TRANSACTION_STATUS_REJECTED) {
      Fail("rejected: " + state.reason());
    }
    if (Clock::now() > until) {
      Fail("still pending: " + hash);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    Fail("usage: write HOST:PORT KEYFILE NAME JSON");
  }
  std::stringstream pem;
  pem << std::ifstream(argv[2]).rdbuf();
  const auto key = signing::LoadKey(pem.str());
  const auto sender = signing::PublicKey(key);
  const auto channel = grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials());
  const auto stub = chain::ChainService::NewStub(channel);
  const auto until = Clock::now() + lifetime;
  const std::uint64_t now =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();

  chain::GetHeadResponse head;
  Call(until, [&](grpc::ClientContext& context) { return stub->GetHead(&context, {}, &head); });
  const auto network = head.genesis_hash();  // In a real client, use a constant for the network.

  chain::TransactionBody fields;
  fields.set_sender(sender);
  fields.set_nonce(now);
  fields.set_timestamp_ms(now);
  fields.set_network(network);
  fields.set_expires_ms(now + std::chrono::milliseconds(lifetime).count());
  auto& create = *fields.mutable_storage()->mutable_create_program();
  create.set_program_name(argv[3]);
  create.mutable_data()->set_json(argv[4]);
  create.mutable_access()->set_mode(storage::ACCESS_MODE_OWNER);
  const auto body = fields.SerializeAsString();

  chain::SubmitTransactionRequest request;
  request.mutable_transaction()->set_body(body);
  request.mutable_transaction()->set_signature(signing::Sign(key, signing::TransactionMessage(body)));
  chain::SubmitTransactionResponse submitted;
  Call(until, [&](grpc::ClientContext& context) { return stub->SubmitTransaction(&context, request, &submitted); });
  std::cout << "block     " << WaitFor(*stub, submitted.hash(), until + seconds(10)) << '\n';

  storage::GetProgramRequest read;
  read.set_storage_address(signing::ProgramAddress(sender, argv[3], now));
  storage::GetProgramResponse program;
  Call(until + seconds(10), [&](grpc::ClientContext& context) {
    for (const auto& [name, value] :
         signing::IdentityHeaders(key, network, "ed25519:" + sender, std::to_string(now))) {
      context.AddMetadata(name, value);
    }
    return storage::StorageService::NewStub(channel)->GetProgram(&context, read, &program);
  });
  std::cout << "program   " << read.storage_address() << '\n' << "data      " << program.data() << '\n';
}
