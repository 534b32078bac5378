"""What failed JavaScript tests did before they failed, with real programs in the sandbox."""

from __future__ import annotations

import base64
import json
import shutil

import pytest

from lcursor.config import AgentConfig
from lcursor.process.sandbox import open_sandbox
from lcursor.workspace import evidence
from lcursor.workspace.evidence import HEAD, collect
from lcursor.workspace.shell import Shell
from tests.unit.workspace.projects import Project, project
from tests.unit.workspace.test_evidence import traced

__all__ = ["project"]
pytestmark = [
    pytest.mark.skipif(open_sandbox().level == "none", reason="no sandbox works here"),
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not here"),
]

CART = """\
class Cart {
  constructor() {
    this.items = [];
  }
  add(price, count = 1) {
    this.items.push({ price, count });
  }
  total() {
    let result = 0;
    for (const { price } of this.items) {
      result += price;
    }
    return result;
  }
}
function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
module.exports = { Cart, readJson };
"""
TESTS = """\
const { test, beforeEach } = require("node:test");
const assert = require("node:assert");
const { Cart, readJson } = require("./cart");

let cart;
beforeEach(() => {
  cart = new Cart();
});
test("one", () => {
  cart.add(3);
  assert.equal(cart.total(), 3);
});
test("many", async () => {
  readJson("no JSON");
  cart.add(3, 2);
  const total = cart.total();
  await null;
  assert.equal(total, 6);
});
"""


def test_calls_and_values_of_a_failed_test(project: Project) -> None:
    found = traced(project, "node --test", {"cart.js": CART, "cart.test.js": TESTS})
    cart = "Cart {items: [{price: 3, count: 2}]}"
    assert found == [
        HEAD,
        "",
        '  readJson(text="no JSON") returned null  [cart.js:16]',
        f"  add(this={cart}, price=3, count=2) returned undefined  [cart.js:5]",
        f"  total(this={cart}) returned 3  [cart.js:8]",
        "At cart.test.js:18 in (anonymous): assert.equal(total, 6);",
        "  total = 3",
        f"  cart = {cart}",
    ]


@pytest.mark.parametrize("name", ["half.js", "half.mjs"])
def test_a_program_without_tests(project: Project, name: str) -> None:
    code = """\
function half(number) {
  const given = { number };
  return given.other.number / 2;
}

half(3);
"""
    found = traced(project, f"node {name}", {name: code})
    assert f"At {name}:6 in (anonymous): half(3);" in found
    at = found.index(f"At {name}:3 in half: return given.other.number / 2;")
    assert found[at + 1 :] == ["  number = 3", "  given = {number: 3}"]


def test_an_error_of_an_asynchronous_function(project: Project) -> None:
    code = """\
const wait = () => new Promise((done) => setTimeout(done, 1));
async function load(name) {
  await wait();
  throw new Error(`no ${name}`);
}
load("file");
"""
    found = traced(project, "node load.js", {"load.js": code})
    at = found.index("At load.js:4 in load: throw new Error(`no ${name}`);")
    assert found[at + 1 :] == ['  name = "file"']


def test_values_that_run_code_or_are_large_do_no_harm(project: Project) -> None:
    code = """\
const { writeFileSync } = require("node:fs");
const trap = (name) => () => {
  writeFileSync("ran", name);
  throw new Error(name);
};
class Odd {
  constructor() {
    Object.defineProperty(this, "x", { get: trap("getter"), enumerable: true });
  }
  get [Symbol.toStringTag]() { return trap("tag")(); }
  toString() { return trap("toString")(); }
  [Symbol.for("nodejs.util.inspect.custom")]() { return trap("inspect")(); }
}
function use(odd, proxy) {
  return odd;
}
function fail() {
  const odd = new Odd(), loop = {}, long = Array.from({ length: 1e5 }, (_, n) => n);
  const proxy = new Proxy({}, { get: trap("get"), ownKeys: trap("keys"), has: trap("has") });
  const map = new Map([["a", 1]]), text = "x".repeat(1e6);
  loop.me = loop;
  for (let n = 0; n < 1e4; n++) use(odd, proxy);
  throw new Error("here");
}
try {
  fail();
} catch (error) {
  const ran = require("node:fs").existsSync("ran");
  console.log(ran ? "it ran code" : error.message);
  process.exitCode = 1;
}
"""
    found = traced(project, "node odd.js", {"odd.js": code})
    assert "  odd = Odd {x: getter}" in found
    assert "  proxy = Proxy(Object)" in found
    assert "  long = [0, 1, 2, 3, 4, 5, …]" in found
    assert "  map = Map(1) {a => 1}" in found
    assert "  loop = {me: {me: {me: Object}}}" in found
    assert sum(map(len, found)) <= evidence.MAX_CHARS


@pytest.mark.parametrize(
    "code",
    [
        'try { null.x } catch {}\nprocess.exitCode = 1;\nconsole.log("failed");',
        "process.exit(3);",
    ],
)
def test_nothing_is_said_of_handled_errors_and_of_none(project: Project, code: str) -> None:
    assert traced(project, "node a.js", {"a.js": code}) == []


def test_a_program_that_replaces_functions(project: Project) -> None:
    code = """\
require("fs").openSync = require("fs").writeSync = Date.now = () => { throw 1; };
JSON.stringify = JSON.parse = process.hrtime = Error.prepareStackTrace = undefined;
delete globalThis.process;
const value = 5;
null.x;
"""
    found = traced(project, "node a.js", {"a.js": code})
    assert found[2:] == ["At a.js:5 in (anonymous): null.x;", "  value = 5"]


def test_lines_are_those_of_the_source_of_a_translated_file(project: Project) -> None:
    source_map = {"version": 3, "sources": ["a.ts"], "names": [], "mappings": "AAEA"}
    data = base64.b64encode(json.dumps(source_map).encode()).decode()
    code = f"null.x; //# sourceMappingURL=data:application/json;base64,{data}\n\nthird\n"
    assert "At a.js:3 in (anonymous): third" in traced(project, "node a.js", {"a.js": code})


def test_options_of_the_user_survive(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--require ./given.cjs")
    files = {"given.cjs": "globalThis.given = 5;", "a.js": "const seen = given;\nnull.x;\n"}
    found = traced(project, "node a.js", files, AgentConfig(env=("NODE_OPTIONS",)))
    assert "  seen = 5" in found


def test_a_program_does_the_same_as_without_a_tracer(project: Project) -> None:
    code = """\
debugger;
function deep(n) { return n && deep(n - 1); }
try { (function again() { again(); })(); } catch (error) { console.log(error.name, deep(2000)); }
new Promise(() => { throw new Error("first"); }).catch((error) => {
  console.log(error.message, new Error("second").stack, process.execArgv);
  setTimeout(() => null.x, 1);
});
"""
    command = "node a.js >log 2>&1; echo $? >>log; cat log; exit 5"
    project.repository({"a.js": code})
    tree = project.tree()
    shell = Shell(tree, open_sandbox(), AgentConfig(), (command,))
    result = shell.run(command, bool)
    log = (tree.path / "log").read_bytes()
    (tree.path / "log").unlink()
    assert collect(shell, command, result, bool, tree.path)
    assert (tree.path / "log").read_bytes() == log
