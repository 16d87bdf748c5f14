// Prints the events of the chain, and resumes after the last one.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "details.h"
#include "gatehouse/chain/v1/chain.grpc.pb.h"
#include "gatehouse/event/v1/event.grpc.pb.h"
#include "signing.h"

namespace chain = gatehouse::chain::v1;
namespace event = gatehouse::event::v1;
using Clock = std::chrono::system_clock;
using std::chrono::seconds;

namespace {

constexpr seconds max_wait(10);

[[noreturn]] void Fail(const std::string& message) {
  std::cerr << message << '\n';
  std::exit(1);
}

std::string ReadFile(const std::string& path) {
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

// Returns the cursor of the last event; empty to start with the next event.
std::string ReadCursor(const std::string& path) {
  std::string cursor;
  std::ifstream(path) >> cursor;
  return cursor;
}

// Writes the file atomically, so that a killed process leaves the old or the new cursor.
void WriteCursor(const std::string& path, const std::string& cursor) {
  std::ofstream file(path + ".new");
  if (!(file << cursor << std::flush) || std::rename((path + ".new").c_str(), path.c_str()) != 0) {
    Fail(path + " cannot be written.");
  }
}

// Returns created for PROGRAM_CHANGE_CREATED; empty for an unknown value of a newer node.
std::string EnumName(const std::string& name) {
  std::string word = name.substr(name.rfind('_') + 1);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

void Print(const event::WatchResponse& message) {
  std::cout << std::left << std::setw(8) << message.cursor() << ' ' << std::setw(12);
  if (message.has_block()) {
    std::cout << "block" << ' ' << message.block().hash();
  } else if (message.has_program()) {
    const auto& program = message.program();
    std::cout << "program" << ' ' << program.storage_address() << ' '
              << EnumName(event::ProgramChange_Name(program.change()));
  } else {
    const auto& transaction = message.transaction();
    std::cout << "transaction" << ' ' << transaction.hash() << ' '
              << (transaction.withheld() ? "withheld"
                                         : EnumName(event::TransactionOutcome_Name(transaction.outcome())));
  }
  std::cout << std::endl;
}

// Adds identity headers, valid for five minutes. A stream that has started continues after that.
grpc::Status AddIdentity(const std::shared_ptr<grpc::Channel>& channel, const signing::Key& key,
                   grpc::ClientContext& context) {
  grpc::ClientContext head_context;
  head_context.set_deadline(Clock::now() + seconds(10));
  chain::GetHeadResponse head;  // In a real client, use a constant for the network.
  const auto status = chain::ChainService::NewStub(channel)->GetHead(&head_context, {}, &head);
  if (status.ok()) {
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
    for (const auto& [name, value] : signing::IdentityHeaders(
             key, head.genesis_hash(), "ed25519:" + signing::PublicKey(key), std::to_string(now))) {
      context.AddMetadata(name, value);
    }
  }
  return status;
}

// Prints each event once, until the stream ends.
grpc::Status Watch(const std::shared_ptr<grpc::Channel>& channel, const std::string& cursor_file,
                   const std::optional<signing::Key>& key) {
  grpc::ClientContext context;  // No deadline, because it would limit the whole stream.
  if (key) {
    const auto status = AddIdentity(channel, *key, context);
    if (!status.ok()) {
      return status;
    }
  }
  event::WatchRequest request;
  request.set_from(ReadCursor(cursor_file));
  for (const auto kind : {event::EVENT_KIND_TRANSACTION, event::EVENT_KIND_PROGRAM, event::EVENT_KIND_BLOCK}) {
    request.add_kinds(kind);
  }
  const auto reader = event::EventService::NewStub(channel)->Watch(&context, request);
  event::WatchResponse message;
  while (reader->Read(&message)) {
    if (!message.has_progress()) {
      Print(message);
    }
    // Store the cursor after the event is printed: a process killed in between repeats it, but misses none.
    WriteCursor(cursor_file, message.cursor());
  }
  return reader->Finish();
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target) {
  // Pings detect a lost connection, because an idle chain sends nothing either.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Open a new connection each time, without the backoff of a lost one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    Fail("usage: watch HOST:PORT CURSORFILE [KEYFILE]");
  }
  const std::string cursor_file = argv[2];
  std::optional<signing::Key> key;
  if (argc == 4) {
    key = signing::LoadKey(ReadFile(argv[3]));
  }
  for (seconds wait(1);;) {
    const auto before = ReadCursor(cursor_file);
    const auto status = Watch(Connect(argv[1]), cursor_file, key);
    const auto [reason, min_wait] = Details(status);
    const bool is_lost = status.error_details().empty() && status.error_code() != grpc::UNIMPLEMENTED;
    if (!min_wait && !is_lost) {
      Fail(reason + ": " + status.error_message() +
           (reason == "PRUNED" ? "\nSomething was missed. Without " + cursor_file + " it begins with what comes next."
                               : ""));
    }
    // Exponential backoff, but at least the delay that the node demands.
    wait = ReadCursor(cursor_file) != before ? seconds(1) : std::min(2 * wait, max_wait);
    std::cerr << "lost: " << (status.ok() ? "the node shuts down" : status.error_message()) << std::endl;
    std::this_thread::sleep_for(std::max(wait, min_wait.value_or(seconds(0))));
  }
}
