import assert from "node:assert/strict";
import test from "node:test";

import { History } from "../src/history.js";
import { Store } from "../src/store.js";

function make() {
  const store = new Store();
  const id = store.add("todo", "paint");
  return { store, id, history: new History(store) };
}

test("undo and redo of a move", () => {
  const { store, id, history } = make();
  store.move(id, "done");
  assert.equal(history.undo(), true);
  assert.deepEqual([store.titles("todo"), store.titles("done")], [["paint"], []]);
  assert.equal(history.redo(), true);
  assert.deepEqual([store.titles("todo"), store.titles("done")], [[], ["paint"]]);
});

test("nothing to undo", () => {
  const { history } = make();
  assert.deepEqual([history.undo(), history.redo()], [false, false]);
});

test("a change ends what can be done again", () => {
  const { store, history } = make();
  store.add("todo", "clean");
  history.undo();
  store.add("todo", "sweep");
  assert.equal(history.redo(), false);
});
