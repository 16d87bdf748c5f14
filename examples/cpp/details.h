// The details of an error of a node.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

// Returns the reason of an error, and the seconds until a retry may succeed.
inline std::pair<std::string, std::optional<std::chrono::seconds>> Details(const grpc::Status& status) {
  std::string reason;
  std::optional<std::chrono::seconds> wait;
  google::rpc::Status packed;
  packed.ParseFromString(status.error_details());
  for (const auto& detail : packed.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&info)) {
      reason = info.reason();
    } else if (detail.UnpackTo(&retry)) {
      wait = std::chrono::seconds(retry.retry_delay().seconds());
    }
  }
  if (reason.empty() && (status.error_code() == grpc::UNAVAILABLE || status.error_code() == grpc::DEADLINE_EXCEEDED)) {
    wait = std::chrono::seconds(1);  // Not from an rpc: the connection is lost, or the response is late.
  }
  return {reason.empty() ? std::to_string(status.error_code()) : reason, wait};
}
