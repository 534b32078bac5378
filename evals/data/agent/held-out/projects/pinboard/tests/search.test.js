import assert from "node:assert/strict";
import test from "node:test";

import { due, find, tagCounts } from "../src/search.js";
import { Store } from "../src/store.js";

function make() {
  const store = new Store();
  store.add("todo", "Paint the door", { tags: ["home"], due: 10 });
  store.add("doing", "Call Eve", { due: 9 });
  store.add("done", "Mow the lawn", { tags: ["home", "garden"], due: 0 });
  store.add("todo", "Paint the wall");
  return store;
}

const titles = (cards) => cards.map((card) => card.title);

test("find", () => {
  assert.deepEqual(titles(find(make(), "HOME the")), ["Paint the door", "Mow the lawn"]);
});

test("due", () => {
  assert.deepEqual(titles(due(make(), 9)), ["Mow the lawn", "Call Eve"]);
  assert.equal(due(make(), 10).length, 3);
});

test("tag counts", () => {
  assert.deepEqual(tagCounts(make()), { home: 2, garden: 1 });
});
