/** A bookstore: a Connect service with plain HTTP routes, in one Express application. */
import { Code, ConnectError } from "@connectrpc/connect";
import { expressConnectMiddleware } from "@connectrpc/connect-express";
import express from "express";
import { transcode } from "gatehouse/transcoding";
import { EventEmitter, on } from "node:events";
import { BookstoreService } from "./gen/bookstore/v1/bookstore_pb.js";

const books = [];
const added = new EventEmitter();

/** @param {import("@connectrpc/connect").ConnectRouter} router */
const routes = (router) =>
  router.service(BookstoreService, {
    listBooks: ({ shelf, author }) => ({
      books: books.filter(
        (book) => book.name.startsWith(`shelves/${shelf}/`) && book.author === (author ?? book.author),
      ),
    }),
    getBook({ name, number }) {
      const book = books.find((candidate, i) => candidate.name === name || i + 1 === number);
      if (book === undefined) {
        throw new ConnectError(`There is no book ${name || number}.`, Code.NotFound);
      }
      return { book };
    },
    addBook({ shelf, book }) {
      books.push({ ...book, name: `shelves/${shelf}/books/${books.length + 1}` });
      added.emit("book", books.at(-1));
      return { book: books.at(-1) };
    },
    async *watchBooks(_request, { signal }) {
      for await (const [book] of on(added, "book", { signal })) yield { book };
    },
  });

const app = express();
app.use("/v1", (request, response, next) => {
  response.on("finish", () => console.log(`${request.method} ${request.route?.path} ${response.statusCode}`));
  next();
});
app.use(transcode({ routes }));
app.use(expressConnectMiddleware({ routes }));
const server = app.listen(Number(process.env.PORT ?? 8000), "127.0.0.1", () =>
  console.log(`The bookstore is at http://127.0.0.1:${server.address().port}/v1/shelves/poems/books`),
);
process.once("SIGINT", () => {
  server.close();
  server.closeAllConnections();
});
