/** An Express application with its own routes, and a node mounted at /node. */
import express from "express";
import { startGatehouse } from "gatehouse/express";

const gatehouse = await startGatehouse({
  "data-dir": "data/embedded",
  "rpc-port": 53550,
  "omni-port": 53551,
  "log-level": "error",
});

const app = express();
// Mount the node before body parsers, because it reads request bodies itself.
app.use("/node", gatehouse.router);
app.use(express.json());
app.get("/hello", (_request, response) => response.send("Hello from the application.\n"));
app.post("/echo", (request, response) => response.json(request.body));

const server = app.listen(8000, "127.0.0.1", (error) => {
  if (error !== undefined) {
    throw error;
  }
  console.log(`The node is at http://127.0.0.1:8000/node and at ${gatehouse.rpcUrl}.`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    // Accept no new connections. Open ones end when the node has ended its streams.
    server.close();
    await gatehouse.stop();
  });
}
