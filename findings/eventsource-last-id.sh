#!/usr/bin/env bash
# eventsource forgets the last event ID between events, and never learns one from an event without data.
#
# Version: eventsource 4.1.1; undici 7.30.2 and launchdarkly-eventsource 2.2.0 for comparison.
# Behavior: by the HTML standard, an ID stays in force for later events without "id:", and a block that has only "id:" sets
#   it too. eventsource reports an empty lastEventId for such events, and ignores an ID that comes without data. undici
#   follows the standard; launchdarkly-eventsource keeps an ID, but does not learn one without data.
# Seen: lastEventId of two events, of which the first has the ID 7, followed by a block that has only the ID 8; and the
#   Last-Event-ID header of the next connection.
# Why it matters: consumers that store event.lastEventId to resume later store an empty text. A server that marks progress
#   with IDs alone, to spare clients a replay, has no effect.
. "$(dirname "$0")/common.sh"

packages eventsource@4.1.1 undici@7.30.2 launchdarkly-eventsource@2.2.0
program run.mjs <<'JS'
import http from "node:http";
import { EventSource as Package } from "eventsource";
import { EventSource as Undici } from "undici";
import launchdarkly from "launchdarkly-eventsource";
import { listen } from "./common.mjs";

process.removeAllListeners("warning");
let connections = [];
const server = http.createServer((request, response) => {
  connections.push(request.headers["last-event-id"] ?? "none");
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end("retry: 100\n\nid: 7\ndata: first\n\ndata: second\n\nid: 8\n\n");
});
const url = `http://127.0.0.1:${await listen(server)}`;

for (const [name, EventSource] of Object.entries({ eventsource: Package, undici: Undici, launchdarkly: launchdarkly.EventSource })) {
  connections = [];
  const seen = [];
  const source = new EventSource(url);
  await new Promise((resolve) => {
    source.addEventListener("message", ({ data, lastEventId }) => {
      seen.push(`${data} "${lastEventId}"`);
      if (seen.length > 2) resolve();
    });
  });
  source.close();
  console.log(`${name}: ${seen.slice(0, 2).join(", ")}; the next connection sends Last-Event-ID: ${connections[1]}`);
}
process.exit(0);
JS
shows node --no-warnings run.mjs <<'SEEN'
eventsource: first "7", second ""; the next connection sends Last-Event-ID: 7
undici: first "7", second "7"; the next connection sends Last-Event-ID: 8
launchdarkly: first "7", second "7"; the next connection sends Last-Event-ID: 7
SEEN
