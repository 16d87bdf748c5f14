#!/bin/sh
# Generates the Go stubs of all services: generate.sh [DIRECTORY [IMPORT_PATH]], by default gen beside this file, as
# example.com/client/gen.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
gen=${2:-example.com/client/gen}

mkdir -p "${1:-$here/gen}"
out=$(cd "${1:-$here/gen}" && pwd)
cd "$root/proto"

protos=$(find gatehouse -name '*.proto' | sort)
set --
for file in $protos; do
  package=$(dirname "$file")
  name=$(basename "$(dirname "$package")")$(basename "$package") # infov1 for gatehouse/info/v1
  set -- "$@" "--go_opt=M$file=$gen/$package;$name" "--go-grpc_opt=M$file=$gen/$package;$name"
done
# shellcheck disable=SC2086
protoc -I . "$@" \
  --go_out="$out" --go_opt="module=$gen" --go-grpc_out="$out" --go-grpc_opt="module=$gen" $protos
echo "$out"
