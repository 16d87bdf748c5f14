#!/bin/sh
# Generates the Python stubs of all services: generate.sh [DIRECTORY], by default gen next to this file.
# Without protoc and grpc_python_plugin it uses grpc_tools of the interpreter $PYTHON.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}

mkdir -p "${1:-$here/gen}"
out=$(cd "${1:-$here/gen}" && pwd)
cd "$root/proto"

# Prefer protoc: the grpc_tools of some distributions does not support `optional` in proto3.
if command -v protoc >/dev/null && plugin=$(command -v grpc_python_plugin); then
  set -- protoc "--plugin=protoc-gen-grpc_python=$plugin"
elif "$python" -c 'import grpc_tools' 2>/dev/null; then
  set -- "$python" -m grpc_tools.protoc
else
  echo "Neither protoc with grpc_python_plugin nor grpc_tools for $python is installed." >&2
  exit 1
fi

# The protos import google.api; error details need google.rpc.
find gatehouse -name '*.proto' | sort | xargs "$@" -I . --python_out="$out" --grpc_python_out="$out" \
  google/api/annotations.proto google/api/http.proto google/api/field_behavior.proto \
  google/rpc/code.proto google/rpc/status.proto google/rpc/error_details.proto
echo "$out"
