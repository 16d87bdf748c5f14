#!/usr/bin/env bash
# One release of Connect is installed in two versions on Node.js 20: npm picks by the engines of each package alone.
#
# Version: npm 11.19.1 with Node.js 20.20.2; @connectrpc/connect, connect-web and connect-node 2.3.0 and 2.1.2.
# Behavior: of the packages of release 2.3.0, only connect-node declares engines (Node.js 22 and later). Without a named version,
#   npm prefers the latest version of a package whose engines fit, so it picks 2.3.0 of connect and connect-web, and 2.1.2 of
#   connect-node. Each requires exactly its own version of connect as a peer.
# Seen: connect-web installs with connect 2.3.0. Adding connect-node afterwards ends with ERESOLVE, which names no engine.
#   All three in one command end the same way. With 2.1.2 named for all three, they install.
# Why it matters: a project on Node.js 20 that began with a browser client cannot add gRPC, and nothing says that the cause is the
#   version of Node.js. On Node.js 22 the same commands work.
. "$(dirname "$0")/common.sh"

case "$(node --version)" in
  v20.*) ;;
  *)
    echo "skipped: needs Node.js 20; this is $(node --version)."
    exit 77
    ;;
esac

program run.sh <<'SH'
# Versions published later do not count.
install() {
  if npm install --no-audit --no-fund --ignore-scripts --before 2026-11-15 "$@" >log 2>&1; then
    node -p '["connect", "connect-web", "connect-node"].filter((name) => fs.existsSync(`node_modules/@connectrpc/${name}`))
      .map((name) => `${name} ${JSON.parse(fs.readFileSync(`node_modules/@connectrpc/${name}/package.json`)).version}`).join(", ")'
  else
    grep -o 'ERESOLVE' log | head -n 1
    echo "lines of the error that name engines: $(grep -ci engine log || true)"
  fi
}
fresh() {
  rm -rf project && mkdir project && cd project && echo '{ "private": true }' >package.json
}
npm view @connectrpc/connect-node@2.3.0 engines.node
others=$(npm view @connectrpc/connect@2.3.0 engines)$(npm view @connectrpc/connect-web@2.3.0 engines)
echo "engines of connect and connect-web: ${others:-none}"
(fresh && install @connectrpc/connect-web && echo "and then connect-node:" && install @connectrpc/connect-node)
echo "all at once:"
(fresh && install @connectrpc/connect @connectrpc/connect-web @connectrpc/connect-node)
echo "with one version named:"
(fresh && install @connectrpc/connect@2.1.2 @connectrpc/connect-web@2.1.2 @connectrpc/connect-node@2.1.2)
SH
shows bash run.sh <<'OUT'
>=22
engines of connect and connect-web: none
connect 2.3.0, connect-web 2.3.0
and then connect-node:
ERESOLVE
lines of the error that name engines: 0
all at once:
ERESOLVE
lines of the error that name engines: 0
with one version named:
connect 2.1.2, connect-web 2.1.2, connect-node 2.1.2
OUT
