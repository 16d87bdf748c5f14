# Functions of the findings. A finding sources this file; CONTRIBUTING.md describes the form.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp "$(dirname "${BASH_SOURCE[0]}")/common.mjs" "$tmp/"

# Installs packages of npm at exact versions, without their install scripts.
packages() {
  echo "packages: $*; Node.js $(node --version)"
  npm install --prefix "$tmp" --silent --no-audit --no-fund --ignore-scripts "$@" || {
    echo "npm could not install the packages."
    exit 2
  }
}

# Requires a Debian package at this upstream version, or skips the finding.
debian() {
  local installed
  installed=$(dpkg-query -W -f '${Version}' "$1" 2>/dev/null) || installed=
  case "$installed" in
    "$2"-* | "$2+"*) echo "Debian: $1 $installed" ;;
    *)
      echo "skipped: needs $1 $2; this machine has ${installed:-none}."
      exit 77
      ;;
  esac
}

# Reads the program from the standard input into a file of the temporary folder.
program() {
  cat >"$tmp/$1"
}

# Runs a command in the temporary folder, and compares its output with the standard input.
shows() {
  cat >"$tmp/expected"
  (cd "$tmp" && "$@" >"$tmp/seen") || {
    cat "$tmp/seen"
    echo "changed: the program failed."
    exit 1
  }
  cat "$tmp/seen"
  diff "$tmp/expected" "$tmp/seen" >"$tmp/difference" || {
    echo "changed (< recorded, > now):"
    cat "$tmp/difference"
    exit 1
  }
  echo "as recorded"
}
