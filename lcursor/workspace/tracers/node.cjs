"use strict";
// Record what a Node.js program does before a test fails; see `workspace.evidence`.
//
// NODE_OPTIONS loads this first. A session of Node's own debugger stops where a function of the
// project returns, which gives its calls, and where an exception is thrown, which gives the values
// there. It goes on at once, and runs no code of the project: getters and proxies are not called.
// Each exception is appended as a line of JSON; those that the command reports are failures.

const { closeSync, openSync, writeSync } = require("node:fs");
const { SourceMap } = require("node:module");
const { fileURLToPath } = require("node:url");
const { threadId } = require("node:worker_threads");
const { now } = Date; // a program may replace this, and the next
const { parse, stringify } = JSON;

const FILE = `${process.env.LCURSOR_EVIDENCE}/${process.pid}-${threadId}.jsonl`;
const ROOT = `${process.env.LCURSOR_EVIDENCE_ROOT}/`;
const MAX_FAILURES = 100; // exceptions, of which most may be handled
const MAX_REPEATED = 10; // of one place
const MAX_CALLS = 12;
const MAX_FRAMES = 3;
const MAX_NAMES = 8;
const MAX_CHARS = 120;
const MAX_ITEMS = 6;
const MAX_DEPTH = 3;
const MAX_HITS = 300; // of each `return`
const MAX_S = 2; // spent here in all
const FRAME_MS = 0.04; // what Node itself takes at each stop, for a frame
const MAX_FRAMES_DEEP = 200; // at a `return`; a deeper recursion is not recorded
const MAX_FOREIGN = 20; // frames of libraries above one of the project: an assertion has fewer
const OWN_SCOPES = ["block", "catch", "local", "closure", "module"];
const MODULE_NAMES = ["exports", "require", "module", "__filename", "__dirname", "jest"];
const SIMPLE = ["date", "regexp", "promise", "proxy", "generator", "weakmap", "weakset"];
const PLAIN_THIS = ["Object", "Module", "Context", "TestContext", "global", "globalThis"];

const scripts = new Map(); // of the project, by id
const hits = new Map(); // by breakpoint, and by place of an exception
const seen = new Set(); // exceptions
let calls = [];
let spentMs = 0;
let session;

function post(method, params) {
  let result;
  session.post(method, params, (_, given) => (result = given));
  return result ?? {};
}

/** Return the properties of an object or scope, as the debugger describes them. */
function properties(object) {
  const { objectId } = object;
  const options = { ownProperties: true, generatePreview: true };
  return post("Runtime.getProperties", { objectId, ...options }).result ?? [];
}

/** Return a short text for a value. */
function show(value, depth = MAX_DEPTH) {
  const { type, subtype } = value;
  let text = value.description ?? String(value.value);
  if (type === "string") text = stringify(value.value.slice(0, MAX_CHARS));
  else if (type === "function") text = "function";
  else if (subtype === "error") text = text.split("\n    at ")[0];
  else if (type === "object" && subtype !== "null" && !SIMPLE.includes(subtype)) {
    text = showItems(value, depth);
  }
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS - 1)}…` : text;
}

function showItems(value, depth) {
  const { subtype, description: name } = value;
  if (!depth) return name;
  const { entries, overflow, properties: first } = preview(value);
  if (entries) return `${name} {${cut(entries, overflow, showEntry)}}`;
  const isArray = subtype === "array" || subtype === "typedarray";
  const own = overflow ? first : properties(value).filter((each) => each.enumerable);
  const items = cut(own, overflow, (each) => {
    const text = overflow ? showFlat(each) : each.value ? show(each.value, depth - 1) : "getter";
    return isArray ? text : `${each.name}: ${text}`;
  });
  return isArray ? `[${items}]` : `${name === "Object" ? "" : `${name} `}{${items}}`;
}

/** Return the first items, joined. */
function cut(items, hasMore, text) {
  const more = hasMore || items.length > MAX_ITEMS ? ["…"] : [];
  return [...items.slice(0, MAX_ITEMS).map(text), ...more].join(", ");
}

/** Return the first properties or entries of an object, which may have a million. */
function preview(value) {
  if (value.preview) return value.preview;
  const options = { functionDeclaration: "function () { return this; }", generatePreview: true };
  return post("Runtime.callFunctionOn", { objectId: value.objectId, ...options }).result.preview;
}

function showEntry({ key, value }) {
  return key ? `${key.description} => ${value.description}` : value.description;
}

function showFlat({ type, value }) {
  if (type === "accessor") return "getter";
  return type === "string" ? stringify(value) : value || type;
}

/** Return the path and line of a place, in the source from which a tool made the script. */
function place({ scriptId, lineNumber, columnNumber }) {
  const { path, map } = scripts.get(scriptId);
  const line = map?.findEntry(lineNumber, columnNumber)?.originalLine ?? lineNumber;
  return { path, line: line + 1 };
}

/** Return the names in a frame with their values, innermost first. */
function variables(frame, types) {
  const found = new Map();
  const self = frame.this;
  if (self?.type === "object" && self.objectId && !PLAIN_THIS.includes(self.className)) {
    found.set("this", self);
  }
  for (const scope of frame.scopeChain.filter((each) => types.includes(each.type))) {
    for (const { name, value } of properties(scope.object)) {
      const isDull = value?.type === "function" || value?.className === "Module";
      const isOwn = value && !isDull && !MODULE_NAMES.includes(name);
      if (isOwn && !found.has(name)) found.set(name, value);
    }
  }
  return [...found];
}

function shown(found) {
  return found.slice(0, MAX_NAMES).map(([name, value]) => [name, show(value)]);
}

/**
 * Record that a function returns.
 *
 * `root` tells tests apart: the place of the unnamed function from which the program began, or ""
 * where an asynchronous function went on.
 */
function addCall(frame, root) {
  if (!/^[\w$]/.test(frame.functionName)) return; // unnamed, or made by the compiler
  const { source } = scripts.get(frame.functionLocation.scriptId);
  const { lineNumber, columnNumber } = frame.functionLocation;
  const given = /^\w*\s*\(([^)]*)|^[^=]*/.exec(source[lineNumber].slice(columnNumber));
  const names = ["this", ...(given[1] ?? given[0]).match(/[\w$]+/g) ?? []];
  const found = variables(frame, ["local"]).filter(([name]) => names.includes(name));
  calls.push({
    name: frame.functionName,
    ...place(frame.functionLocation),
    arguments: shown(found),
    result: show(frame.returnValue),
    raised: "",
    root,
  });
  calls = calls.slice(-MAX_CALLS);
}

/** Count what happens at a place. */
function hit(key) {
  hits.set(key, (hits.get(key) ?? 0) + 1);
  return hits.get(key);
}

/** Record that an exception was thrown. */
function addFailure(error, own, root) {
  const key = error.description ?? String(error.value);
  if (seen.has(key) || seen.size === MAX_FAILURES) return; // it was thrown again
  const { location } = own[0];
  if (hit(`${location.scriptId}:${location.lineNumber}`) > MAX_REPEATED) return;
  seen.add(key);
  const given = error.objectId && properties(error).find((each) => each.name === "message");
  const message = given?.value?.value ?? key.split("\n")[0];
  const frames = own.slice(0, MAX_FRAMES).reverse().map((frame) => {
    const name = frame.functionName || "(anonymous)";
    return { name, ...place(frame.location), names: shown(variables(frame, OWN_SCOPES)) };
  });
  const first = root ? calls.findLastIndex((call) => call.root && call.root !== root) + 1 : 0;
  const last = calls.slice(first).slice(-MAX_CALLS);
  const record = { test: "", error: show(error), message, frames, calls: last, only: [] };
  const file = openSync(FILE, "a");
  writeSync(file, `${stringify(record)}\n`);
  closeSync(file);
}

function onParsed({ scriptId, url, sourceMapURL, endLine }) {
  const path = url.startsWith("file://") ? fileURLToPath(url) : url;
  if (!path.startsWith(ROOT) || path.includes("/node_modules/")) return;
  const start = { scriptId, lineNumber: 0, columnNumber: 0 };
  const source = post("Debugger.getScriptSource", { scriptId }).scriptSource.split("\n");
  const [, data] = /^data:application\/json[^,]*;base64,(.*)$/.exec(sourceMapURL ?? "") ?? [];
  const map = data && new SourceMap(parse(Buffer.from(data, "base64").toString()));
  scripts.set(scriptId, { path: path.slice(ROOT.length), source, map });
  for (const location of post("Debugger.getPossibleBreakpoints", { start }).locations ?? []) {
    if (location.type === "return") post("Debugger.setBreakpoint", { location });
  }
}

function onPaused({ callFrames, hitBreakpoints, reason, data }) {
  const isOwn = (frame) => scripts.has(frame.location.scriptId);
  if (!callFrames.slice(0, MAX_FOREIGN).some(isOwn)) return;
  const own = callFrames.filter(isOwn);
  const outer = own.at(-1);
  const { scriptId, lineNumber, columnNumber } = outer.functionLocation;
  const root = outer.functionName ? "" : `${scriptId}:${lineNumber}:${columnNumber}`;
  if (reason === "exception" || reason === "promiseRejection") addFailure(data, own, root);
  for (const breakpointId of hitBreakpoints ?? []) {
    const isOften = hit(breakpointId) > MAX_HITS || callFrames.length > MAX_FRAMES_DEEP;
    if (isOften) post("Debugger.removeBreakpoint", { breakpointId });
    else if (callFrames[0].returnValue) addCall(callFrames[0], root);
  }
}

/** Let a function handle an event, never with an effect on the program. */
function listen(event, handle) {
  session.on(event, ({ params }) => {
    const beganMs = now();
    try {
      handle(params);
      spentMs += now() - beganMs + (params.callFrames?.length ?? 0) * FRAME_MS;
      if (spentMs > MAX_S * 1000) {
        post("Debugger.setBreakpointsActive", { active: false });
        post("Debugger.setPauseOnExceptions", { state: "uncaught" });
      }
    } catch {
      // what cannot be shown is left out
    }
  });
}

try {
  session = new (require("node:inspector").Session)();
  session.connect();
  listen("Debugger.scriptParsed", onParsed);
  listen("Debugger.paused", onPaused);
  post("Debugger.enable");
  post("Debugger.setPauseOnExceptions", { state: "all" });
} catch {
  // this process has no debugger: `node --test` itself, which starts others
}
