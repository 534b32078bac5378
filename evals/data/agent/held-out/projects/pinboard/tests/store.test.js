import assert from "node:assert/strict";
import test from "node:test";

import { Store } from "../src/store.js";

test("add", () => {
  const store = new Store();
  assert.equal(store.add("todo", "paint"), 1);
  assert.equal(store.add("todo", "clean", { tags: ["home"] }), 2);
  assert.deepEqual(store.titles("todo"), ["paint", "clean"]);
  assert.throws(() => store.add("never", "x"), /no such list/);
});

test("move", () => {
  const store = new Store();
  const [one, two] = ["one", "two"].map((title) => store.add("todo", title));
  store.move(one, "todo");
  assert.deepEqual(store.titles("todo"), ["two", "one"]);
  store.move(two, "done", 0);
  assert.deepEqual([store.titles("todo"), store.titles("done")], [["one"], ["two"]]);
});

test("remove", () => {
  const store = new Store();
  store.remove(store.add("todo", "one"));
  assert.deepEqual(store.titles("todo"), []);
  assert.throws(() => store.remove(1), /no such card/);
});

test("changes are events", () => {
  const store = new Store();
  const seen = [];
  const off = store.events.on("change", (...values) => seen.push(values));
  store.tag(store.add("todo", "one"), "home");
  off();
  store.rename(1, "two");
  assert.deepEqual(seen, [["add", 1], ["tag", 1]]);
});

test("an event that is awaited once", () => {
  const store = new Store();
  const seen = [];
  store.events.once("change", (kind) => seen.push(kind));
  store.add("todo", "one");
  store.add("todo", "two");
  assert.deepEqual(seen, ["add"]);
});
