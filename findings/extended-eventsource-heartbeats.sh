#!/usr/bin/env bash
# extended-eventsource delivers heartbeats, and empty lines that arrive in two parts, as messages without data.
#
# Version: extended-eventsource 2.1.0; eventsource 4.1.1 for comparison.
# Behavior: by the HTML standard, a block without data is no event. This package dispatches "message" for each comment
#   but one that opens the stream, and for each "retry:" alone. If CR and LF of a line end arrive in two reads, it takes them for two line ends.
# Seen: a stream of one event, one heartbeat and one retry time gives three messages, of which two are empty; an event
#   whose line end is split gives an additional one.
# Why it matters: a listener that calls JSON.parse on each message throws at the first heartbeat, some seconds after
#   everything worked. Servers that send heartbeats as comments, so that no client sees them, are seen.
. "$(dirname "$0")/common.sh"

packages extended-eventsource@2.1.0 eventsource@4.1.1
program run.mjs <<'JS'
import http from "node:http";
import { EventSource as Package } from "eventsource";
import { EventSource as Extended } from "extended-eventsource";
import { listen, sleep } from "./common.mjs";

const streams = {
  heartbeat: ["data: block\n\n: still here\n\nretry: 60000\n\n"],
  split: ["data: block\r\n\r", "\n"],
};
const server = http.createServer(async (request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const part of streams[request.url.slice(1)]) {
    response.write(part);
    await sleep(200);
  }
  response.write("event: last\ndata: 1\n\n");
});
const url = `http://127.0.0.1:${await listen(server)}`;

for (const [name, create] of [
  ["eventsource", (path) => new Package(path)],
  ["extended-eventsource", (path) => new Extended(path, { disableLogger: true })],
]) {
  for (const stream of Object.keys(streams)) {
    const seen = [];
    const source = create(`${url}/${stream}`);
    source.addEventListener("message", ({ data }) => seen.push(JSON.stringify(data)));
    await new Promise((resolve) => source.addEventListener("last", resolve));
    source.close();
    console.log(`${name}, ${stream}: ${seen.join(", ")}`);
  }
}
process.exit(0);
JS
shows node run.mjs <<'SEEN'
eventsource, heartbeat: "block"
eventsource, split: "block"
extended-eventsource, heartbeat: "block", "", ""
extended-eventsource, split: "block", ""
SEEN
