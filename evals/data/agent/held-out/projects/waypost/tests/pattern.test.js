import assert from "node:assert/strict";
import test from "node:test";

import { compile, fill } from "../src/pattern.js";

test("a pattern without names", () => {
  assert.deepEqual(compile("/about.html")("/about.html"), {});
  assert.equal(compile("/about.html")("/aboutXhtml"), null);
});

test("a name for a part", () => {
  assert.deepEqual(compile("/users/:id/posts")("/users/7/posts"), { id: "7" });
  assert.equal(compile("/users/:id")("/users/7/posts"), null);
});

test("a name for the rest", () => {
  assert.deepEqual(compile("/files/*path")("/files/a/b%20c.txt"), { path: "a/b c.txt" });
});

test("fill", () => {
  assert.equal(fill("/users/:id/*rest", { id: "a/b", rest: "x/y" }), "/users/a%2Fb/x/y");
});
