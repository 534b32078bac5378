import assert from "node:assert/strict";
import test from "node:test";

import { json } from "../src/respond.js";
import { Router } from "../src/router.js";

const makeRouter = () =>
  new Router()
    .add("GET", "/users/:id", ({ params }) => json(params), "user")
    .add("POST", "/users/:id", async ({ params }) => json({ saved: params.id }, 201))
    .add("GET", "/search", ({ query }) => json(query))
    .add("GET", "/broken", async () => {
      throw new Error("no disk");
    });

test("a handler gets the values of the path", async () => {
  const answer = await makeRouter().handle("GET", "/users/7");
  assert.equal(answer.body, '{"id":"7"}');
});

test("a handler gets the query", async () => {
  const answer = await makeRouter().handle("GET", "/search?q=a%3Db&from=x=y");
  assert.deepEqual(JSON.parse(answer.body), { q: "a=b", from: "x=y" });
});

test("the method decides", async () => {
  const answer = await makeRouter().handle("POST", "/users/7");
  assert.equal(answer.status, 201);
});

test("an unknown path", async () => {
  assert.equal((await makeRouter().handle("GET", "/nowhere")).status, 404);
});

test("a method that the path does not have", async () => {
  const answer = await makeRouter().handle("DELETE", "/users/7");
  assert.equal(answer.status, 405);
  assert.equal(answer.headers.allow, "GET, POST");
});

test("a handler that fails", async () => {
  const answer = await makeRouter().handle("GET", "/broken");
  assert.deepEqual([answer.status, answer.body], [500, "error: no disk"]);
});

test("wrappers are called in their order", async () => {
  const calls = [];
  const router = makeRouter();
  for (const name of ["one", "two"]) {
    router.use(async (request, next) => {
      calls.push(name);
      const answer = await next();
      calls.push(`${name} ${answer.status}`);
      return answer;
    });
  }
  await router.handle("GET", "/users/7");
  assert.deepEqual(calls, ["one", "two", "two 200", "one 200"]);
});

test("the path of a route", () => {
  assert.equal(makeRouter().pathOf("user", { id: 7 }), "/users/7");
});
