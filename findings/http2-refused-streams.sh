#!/usr/bin/env bash
# A node:http2 server counts streams that it refuses as invalid frames, and then drops the accepted streams as well.
#
# Version: Node.js 20.20.2, 22.23.3, 24.21.0 and 26.10.0.
# Behavior: a client may open streams before it has the server's SETTINGS. Those beyond maxConcurrentStreams are refused, which
#   a client may repeat. Node.js counts them against maxSessionInvalidFrames (1,000 by default). maxSessionRejectedStreams, whose
#   documented meaning is the number of rejected streams that are tolerated, has no effect on them. Above the limit the session
#   ends, and all open streams have INTERNAL_ERROR.
# Seen: of 40 requests at once to a server with 16 streams, 16 are answered and 24 refused, also with a limit of one rejected
#   stream. With 20 invalid frames, none is answered: those that the server accepted are lost, too.
# Why it matters: a burst at the start of a connection fails as a whole, with a code after which a client must not repeat, while
#   the server's handlers have run.
. "$(dirname "$0")/common.sh"

program run.mjs <<'JS'
import { once } from "node:events";
import http2 from "node:http2";

const names = { 2: "INTERNAL_ERROR", 7: "REFUSED_STREAM" };
for (const limits of [{ maxSessionRejectedStreams: 1 }, { maxSessionInvalidFrames: 20 }]) {
  const server = http2.createServer({ settings: { maxConcurrentStreams: 16 }, ...limits });
  let handled = 0;
  server.on("stream", (stream) => {
    stream.on("error", () => undefined);
    handled++;
    setTimeout(() => stream.destroyed || stream.respond({ ":status": 200 }, { endStream: true }), 100);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = http2.connect(`http://127.0.0.1:${server.address().port}`).on("error", () => undefined);
  const codes = {};
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      const stream = session.request({ ":path": "/" });
      let status;
      stream.on("response", (headers) => (status = headers[":status"])).on("error", () => undefined).resume();
      await new Promise((resolve) => stream.once("close", resolve));
      const result = status ?? names[stream.rstCode];
      codes[result] = (codes[result] ?? 0) + 1;
    }),
  );
  console.log(JSON.stringify(limits), JSON.stringify(codes), "handled:", handled);
  session.destroy();
  server.close();
}
process.exit(0);
JS
shows node run.mjs <<'SEEN'
{"maxSessionRejectedStreams":1} {"200":16,"REFUSED_STREAM":24} handled: 16
{"maxSessionInvalidFrames":20} {"REFUSED_STREAM":22,"INTERNAL_ERROR":18} handled: 16
SEEN
