import assert from "node:assert/strict";
import test from "node:test";

import { formatQuery, parseQuery } from "../src/query.js";

test("names and values", () => {
  assert.deepEqual(parseQuery("a=1&b=two+words&c"), { a: "1", b: "two words", c: "" });
  assert.deepEqual(parseQuery(""), {});
});

test("a repeated name", () => {
  assert.deepEqual(parseQuery("a=1&a=2&a=3"), { a: ["1", "2", "3"] });
});

test("format", () => {
  assert.equal(formatQuery({ a: "x y", b: [1, 2], c: null }), "a=x%20y&b=1&b=2");
});
