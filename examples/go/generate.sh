#!/bin/sh
# Generates the Go stubs of all services: generate.sh [DIRECTORY], by default gen next to this file. They are a
# separate module, gatehouse.example/contract, which the go_package of each proto names.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
module=gatehouse.example/contract

mkdir -p "${1:-$here/gen}"
out=$(cd "${1:-$here/gen}" && pwd)
cd "$root/proto"

# shellcheck disable=SC2046
protoc -I . --go_out="$out" --go_opt="module=$module" --go-grpc_out="$out" --go-grpc_opt="module=$module" \
  $(find gatehouse -name '*.proto')
echo "module $module" > "$out/go.mod"
echo "$out"
