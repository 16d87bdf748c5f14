// A gRPC client of a Gatehouse node. The Makefile generates the stubs.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "gatehouse/chain/v1/chain.grpc.pb.h"
#include "gatehouse/health/v1/health.grpc.pb.h"
#include "gatehouse/info/v1/info.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace chain = gatehouse::chain::v1;
namespace health = gatehouse::health::v1;
namespace info = gatehouse::info::v1;

namespace {

constexpr char usage[] = R"(usage: client [options] HOST:PORT

Prints the version, health and latest block of a node.

  HOST:PORT   the RPC port of the node, by default 53550
  --block N   print block N as well; a missing block shows the format of errors
  --watch N   print health until it has changed N times
  --ca FILE   use TLS, and trust the certificates in this file (PEM)
  --help      this text

The exit code is 0 when every call succeeded.
)";

struct Options {
  std::string target;
  std::optional<std::uint64_t> block;
  std::uint64_t watch = 0;
  std::string ca;
};

[[noreturn]] void Fail(const std::string& message) {
  std::cerr << message << '\n';
  std::exit(2);
}

std::uint64_t ParseNumber(const std::string& option, const std::string& text) {
  std::uint64_t number = 0;
  std::istringstream in(text);
  if (text.find_first_not_of("0123456789") != std::string::npos || !(in >> number)) {
    Fail(option + " takes a whole number, not \"" + text + "\".");
  }
  return number;
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    if (argument == "--help") {
      std::cout << usage;
      std::exit(0);
    }
    if (argument.rfind("--", 0) != 0 && options.target.empty()) {
      options.target = argument;
      continue;
    }
    if (argument != "--block" && argument != "--watch" && argument != "--ca") {
      Fail("\"" + argument + "\" is not understood.\n" + usage);
    }
    if (++i == argc) {
      Fail(argument + " needs a value.");
    }
    if (argument == "--block") {
      options.block = ParseNumber(argument, argv[i]);
    } else if (argument == "--watch") {
      options.watch = ParseNumber(argument, argv[i]);
    } else {
      options.ca = argv[i];
    }
  }
  if (options.target.empty()) {
    Fail(usage);
  }
  return options;
}

void Show(const std::string& label, const std::string& text) {
  // Flush, because --watch output is read while the program runs.
  std::cout << label << std::string(label.size() < 10 ? 10 - label.size() : 1, ' ') << text << std::endl;
}

// Returns the name of an enum value without the common prefix of its enum: ok for HEALTH_STATUS_OK.
std::string EnumName(const std::string& name, const std::string& unspecified) {
  std::string word = name.substr(std::min(name.size(), unspecified.size() - std::strlen("UNSPECIFIED")));
  for (char& c : word) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word.empty() ? "unknown" : word;
}

std::string HealthLine(const health::HealthSnapshot& snapshot) {
  return EnumName(health::HealthStatus_Name(snapshot.status()), "HEALTH_STATUS_UNSPECIFIED") +
         (snapshot.accepting() ? ", accepting" : ", not accepting");
}

std::map<std::string, std::string> SubsystemLines(const health::HealthSnapshot& snapshot) {
  std::map<std::string, std::string> lines;
  for (const auto& [name, subsystem] : snapshot.subsystems()) {
    std::string& line = lines[name];
    line = name + " " + EnumName(health::SubsystemStatus_Name(subsystem.status()), "SUBSYSTEM_STATUS_UNSPECIFIED");
    if (subsystem.has_port()) {
      line += ", port " + std::to_string(subsystem.port());
    }
    if (subsystem.has_last_error()) {
      line += ", last error: " + subsystem.last_error().message();
    }
  }
  return lines;
}

// Prints a failed call: its message, the gRPC code, and the reason from the error details.
void ShowError(const std::string& what, const grpc::Status& status) {
  Show(what, "failed: " + status.error_message());
  Show("  code", std::to_string(status.error_code()));
  google::rpc::Status packed;
  // The details are empty if the error is not from an rpc, but from a failed connection, for example.
  packed.ParseFromString(status.error_details());
  for (const auto& detail : packed.details()) {
    google::rpc::ErrorInfo error;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&error)) {
      Show("  reason", error.reason() + " (domain " + error.domain() + ")");
    } else if (detail.UnpackTo(&retry)) {
      Show("  retry", "in " + std::to_string(retry.retry_delay().seconds()) + " s");
    }
  }
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
}

grpc::Status ReadVersion(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  SetDeadline(context);
  info::GetVersionResponse response;
  const auto status = info::InfoService::NewStub(channel)->GetVersion(&context, {}, &response);
  if (status.ok()) {
    Show("version", response.version());
  }
  return status;
}

grpc::Status ReadHealth(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  SetDeadline(context);
  health::GetHealthResponse response;
  const auto status = health::HealthService::NewStub(channel)->GetHealth(&context, {}, &response);
  if (status.ok()) {
    Show("health", HealthLine(response.snapshot()));
    for (const auto& [name, line] : SubsystemLines(response.snapshot())) {
      Show("", line);
    }
  }
  return status;
}

grpc::Status ReadHead(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  SetDeadline(context);
  chain::GetHeadResponse response;
  const auto status = chain::ChainService::NewStub(channel)->GetHead(&context, {}, &response);
  if (status.ok()) {
    Show("head", "block " + std::to_string(response.number()) + ", " + response.hash());
  }
  return status;
}

grpc::Status ReadBlock(const std::shared_ptr<grpc::Channel>& channel, std::uint64_t number) {
  grpc::ClientContext context;
  SetDeadline(context);
  chain::GetBlockRequest request;
  request.set_number(number);
  chain::GetBlockResponse response;
  const auto status = chain::ChainService::NewStub(channel)->GetBlock(&context, request, &response);
  if (status.ok()) {
    Show("block", std::to_string(response.header().number()) + ", " + response.hash() + ", " +
                      std::to_string(response.transaction_hashes_size()) + " transactions");
    for (const auto& hash : response.transaction_hashes()) {
      Show("", hash);
    }
  }
  return status;
}

// Prints the current health, and each change with its changed subsystems.
grpc::Status WatchHealth(const std::shared_ptr<grpc::Channel>& channel, std::uint64_t changes) {
  // No deadline, because it would limit the whole stream.
  grpc::ClientContext context;
  const auto reader = health::HealthService::NewStub(channel)->WatchHealth(&context, {});
  health::WatchHealthResponse response;
  std::string line_before;
  std::map<std::string, std::string> subsystems_before;
  std::uint64_t number = 0;
  while (reader->Read(&response)) {
    const auto line = HealthLine(response.snapshot());
    const auto subsystems = SubsystemLines(response.snapshot());
    if (line_before.empty()) {
      Show("watch", line);
    } else if (line != line_before || subsystems != subsystems_before) {
      Show("change " + std::to_string(++number), line);
      for (const auto& [name, text] : subsystems) {
        if (subsystems_before[name] != text) {
          Show("", text);
        }
      }
    }
    // Otherwise only values changed that are not printed, such as the number of pending transactions.
    line_before = line;
    subsystems_before = subsystems;
    if (number == changes) {
      context.TryCancel();
      reader->Finish();
      return grpc::Status::OK;
    }
  }
  const auto status = reader->Finish();
  if (status.ok()) {
    Show("watch", "the node has ended the stream; it shuts down");
  }
  return status;
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const std::string& ca) {
  if (ca.empty()) {
    return grpc::InsecureChannelCredentials();
  }
  std::ifstream file(ca);
  std::stringstream roots;
  roots << file.rdbuf();
  if (!file) {
    Fail(ca + " cannot be read.");
  }
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = roots.str();
  return grpc::SslCredentials(options);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  const auto channel = grpc::CreateChannel(options.target, Credentials(options.ca));
  int exit_code = 0;
  const auto check = [&exit_code](const std::string& what, const grpc::Status& status) {
    if (!status.ok()) {
      ShowError(what, status);
      exit_code = 1;
    }
  };
  check("version", ReadVersion(channel));
  check("health", ReadHealth(channel));
  check("head", ReadHead(channel));
  if (options.block) {
    check("block", ReadBlock(channel, *options.block));
  }
  if (options.watch > 0) {
    check("watch", WatchHealth(channel, options.watch));
  }
  return exit_code;
}
