/** An application of Express with routes of its own, and a node below /node. */
import express from "express";
import { startGatehouse } from "gatehouse/express";

const gatehouse = await startGatehouse({
  "data-dir": "data/embedded",
  "rpc-port": 53550,
  "omni-port": 53551,
  "log-level": "error",
});

const app = express();
// Before body parsers: the node reads the bodies of its requests itself.
app.use("/node", gatehouse.router);
app.use(express.json());
app.get("/hello", (_request, response) => response.send("Hello from the application.\n"));
app.post("/echo", (request, response) => response.json(request.body));

const server = app.listen(8000, "127.0.0.1", (error) => {
  if (error !== undefined) {
    throw error;
  }
  console.log(`http://127.0.0.1:8000/node is the node, which is at ${gatehouse.rpcUrl}, too.`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    // No new connections; what is open ends when the node has ended its streams.
    server.close();
    await gatehouse.stop();
  });
}
