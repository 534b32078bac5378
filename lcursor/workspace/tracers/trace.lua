-- Record what a Lua program does before a test fails; see `workspace.evidence`.
--
-- LUA_INIT loads this first, and Neovim by `bin/nvim` or `nvim/filetype.lua`. A hook sees calls,
-- returns and lines of the project; `pcall` and `xpcall` see errors where they are raised. No
-- metamethod is called. Each error is a line of JSON in a file; those that the command reports are
-- failures. For Lua 5.1 to 5.4 and LuaJIT, with what a program may replace kept here.

local MAX_FAILURES = 100 -- Errors, of which most may be handled.
local MAX_REPEATED = 10 -- Of one place.
local MAX_CALLS = 12
local MAX_FRAMES = 3
local MAX_NAMES = 8
local MAX_CHARS = 120
local MAX_ITEMS = 6
local MAX_DEPTH = 3
local MAX_LEVELS = 100 -- Of the stack.
local LEVEL = 4 -- Of a function of the project, for `on_event`.
local MAX_HITS = 2000 -- Calls of a function that are recorded in a test.
local MAX_EVENTS = 1e6 -- After these, only errors are recorded, so that loops stay fast.
local FOREIGN = "/%.luarocks/ /lua_modules/ /node_modules/ /%.venv/ /pack/ /%.?deps/ /plenary"
  .. " /busted/ /luassert/ /luaunit%.lua$ /mini%.nvim/ /mini/test%.lua$" -- Patterns of paths.

local FOLDER, ROOT = os.getenv("LCURSOR_EVIDENCE"), os.getenv("LCURSOR_EVIDENCE_ROOT") .. "/"
local HERE = (os.getenv("PWD") or "") .. "/"
local FILE = FOLDER .. "/" .. os.time() .. tostring({}):match("%w+$") .. ".jsonl"

local getinfo, getlocal, getupvalue = debug.getinfo, debug.getlocal, debug.getupvalue
local concat, insert, remove, sort = table.concat, table.insert, table.remove, table.sort
local loaded, unpack = package.loaded, table.unpack or unpack
local next, pairs, rawget, select, setmetatable = next, pairs, rawget, select, setmetatable
local tostring, type = tostring, type
local pcall, xpcall, open, sethook = pcall, xpcall, io.open, debug.sethook
local byte, find, format, gmatch = string.byte, string.find, string.format, string.gmatch
local gsub, match, sub = string.gsub, string.match, string.sub

local failures, indexes, seen, hits = {}, {}, {}, {}
local passed = {} -- Lines that ran in protected calls that returned, by place of the function.
local lines, calls, counts = {}, {}, {} -- Of the present protected call.
local active = {} -- Calls that have not returned.
local base = 0 -- Number of those when the present protected call began.
local events = 0
local known = setmetatable({}, { __mode = "k" }) -- What `about` returns.
local places = {} -- Of functions, by path and line.
local sources = {} -- Lines by path.
for _, library in pairs({ _G, string, table, math, io, os, coroutine }) do
  for _, value in pairs(library) do
    if type(value) == "function" then
      known[value] = false -- It is called often, and not for an error.
    end
  end
end

local function cut(text)
  return #text <= MAX_CHARS and text or gsub(sub(text, 1, MAX_CHARS), "[\128-\255]*$", "") .. "…"
end

--- Return a short text for a value.
local function show(value, depth)
  local kind = type(value)
  if kind == "string" then
    return (gsub(format("%q", cut(value)), "\\\n", "\\n"))
  elseif kind == "number" or kind == "boolean" or kind == "nil" then
    return tostring(value)
  elseif kind ~= "table" then
    return kind
  elseif depth == 0 then
    return next(value) == nil and "{}" or "{…}"
  end
  local items, count, length = {}, 0, 0
  for key, item in next, value do
    count = count + 1
    if count > MAX_ITEMS then
      items[count] = "…"
      break
    end
    local is_item = key == length + 1
    length = is_item and key or length
    local name = type(key) == "string" and find(key, "^[%a_][%w_]*$") and key
    name = name or "[" .. show(key, 0) .. "]"
    items[count] = (is_item and "" or name .. " = ") .. show(item, depth - 1)
  end
  if length == 0 and count <= MAX_ITEMS then
    sort(items) -- The order of keys is another one in each run.
  end
  return cut("{" .. concat(items, ", ") .. "}")
end

local function source_line(path, number)
  local found = sources[path]
  if not found then
    found = {}
    local file = open(ROOT .. path)
    if file then
      for line in file:lines() do
        found[#found + 1] = line
      end
      file:close()
    end
    sources[path] = found
  end
  return found[number] or ""
end

--- Return "C" for a function in C, and the place of one of the project; its name if it is no test.
local function about(func)
  local found = known[func]
  if found ~= nil then
    return found
  end
  local info = getinfo(func, "S")
  local path = match(info.source, "^@%.?/?(.*)$") or ""
  path = find(info.source, "^@/") and "/" .. path or HERE .. path
  found = info.what == "C" and "C"
  if not found and sub(info.source, 1, 1) == "@" and sub(path, 1, #ROOT) == ROOT then
    found = { path = sub(path, #ROOT + 1), line = info.linedefined }
    for pattern in gmatch(FOREIGN, "%S+") do
      found = found and not find("/" .. found.path, pattern) and found
    end
  end
  if type(found) == "table" then
    local key = found.path .. ":" .. found.line
    places[key] = places[key] or found
    found = places[key]
    local text = source_line(found.path, found.line)
    local name = match(text, "function%s+([%w_.:]+)%s*%(")
      or match(text, "([%w_.]+)%s*=%s*function")
    found.name = name and not find(name, "%f[%w_][tT]est") and name or nil
    found.label = info.what == "main" and "main chunk" or name or "(anonymous)"
  end
  known[func] = found
  return found
end

--- Call a function with the names and values of the locals of a frame, at a level of the caller.
local function each_local(level, act)
  for index = 1, 200 do
    local name, value = getlocal(level + 1, index)
    if not name then
      return
    elseif sub(name, 1, 1) ~= "(" then
      act(name, value)
    end
  end
end

--- Return what a line returns: a value, or an expression with the values of its locals.
local function returned(path, line)
  local text = match(source_line(path, line), "%f[%w_]return%f[^%w_]%s*(.-)[%s;]*$")
  if not text then
    return "nil"
  end
  text = gsub(text, "[%s;]+end[%s;]*$", "")
  local values = {}
  local only
  each_local(LEVEL + 2, function(name, value)
    if name == text then
      only = show(value, MAX_DEPTH)
    elseif find(text, "%f[%w_]" .. name .. "%f[^%w_]") then
      values[#values + 1] = name .. "=" .. show(value, 1)
    end
  end)
  return only or text .. (#values > 0 and " (" .. concat(values, ", ") .. ")" or "")
end

local function add(list, call)
  insert(list, call)
  if #list > MAX_CALLS then
    remove(list, 1)
  end
end

--- Record the calls after the first ones, which end without an event: in a tail call, or by an
--- error, if they are in `live`.
local function end_calls(count, live, raised)
  for index = #active, count + 1, -1 do
    local call = active[index].call
    local text = source_line(call.path, active[index].line or 0)
    local result = match(text, "%f[%w_]return%f[^%w_]%s*(.*)$")
    if live and live[active[index].place] then
      call.raised = raised
      add(calls, call)
    elseif result then
      call.result = result
      add(calls, call)
    end
    active[index] = nil
  end
end

local function on_call(place)
  counts[place] = (counts[place] or 0) + 1
  if counts[place] > MAX_HITS then
    return
  end
  local call = { name = place.name, path = place.path, line = place.line, raised = "" }
  call.arguments, call.result, call.began = {}, "", events
  each_local(LEVEL + 1, function(name, value)
    call.arguments[#call.arguments + 1] = { name, show(value, MAX_DEPTH) }
  end)
  if #active == base + MAX_LEVELS then
    end_calls(base)
  end
  active[#active + 1] = { call = call, place = place }
end

local function on_line(place, line)
  lines[place] = lines[place] or {}
  lines[place][line] = true
  if #active > 0 and active[#active].place == place then
    active[#active].line = line
  end
end

local function on_return(place, line)
  for index = #active, 1, -1 do
    if active[index].place == place then
      end_calls(index)
      active[index].call.result = returned(place.path, line)
      add(calls, active[index].call)
      active[index] = nil
      return
    end
  end
end

local function json(value)
  if type(value) == "number" then
    return format("%d", value)
  elseif type(value) == "string" then
    return '"'
      .. gsub(value, '[%c"\\]', function(char)
        return format("\\u%04x", byte(char))
      end)
      .. '"'
  end
  local items = {}
  for index = 1, #value do
    items[index] = json(value[index])
  end
  if #items > 0 or next(value) == nil then
    return "[" .. concat(items, ",") .. "]"
  end
  for key, item in next, value do
    items[#items + 1] = json(key) .. ":" .. json(item)
  end
  return "{" .. concat(items, ",") .. "}"
end

--- Return the lines of a failure that ran in no protected call that returned.
local function only(failure)
  local found = {}
  for place, numbers in pairs(failure.lines) do
    for number in pairs(passed[place] and numbers or {}) do
      if not passed[place][number] then
        found[#found + 1] = { place.path, place.name, { number } }
      end
    end
  end
  sort(found, function(a, b)
    return a[1] < b[1] or a[1] == b[1] and a[3][1] < b[3][1]
  end)
  return found
end

local function write()
  local file = open(FILE, "w")
  for _, failure in pairs(file and failures or {}) do
    failure.record.only = only(failure)
    file:write(json(failure.record), "\n")
  end
  if file then
    file:close()
  end
end

--- Return whether a value is a function, a class or a module.
local function is_dull(value)
  local is_class = type(value) == "table" and rawget(value, "__index") == value
  if type(value) == "table" then
    for _, module in next, loaded do
      is_class = is_class or module == value
    end
  end
  return is_class or type(value) == "function"
end

--- Return a frame with its values: locals, and then those of the functions around it.
local function frame(level, place, line, func)
  local names, index_of = {}, {}
  local function put(name, value)
    local index = index_of[name] or #names + 1
    if not is_dull(value) and index <= MAX_NAMES then
      names[index], index_of[name] = { name, show(value, MAX_DEPTH) }, index
    end
  end
  each_local(level + 1, put)
  for index = 1, 60 do
    local name, value = getupvalue(func, index)
    if name and name ~= "" and name ~= "_ENV" and not index_of[name] then
      put(name, value)
    end
  end
  return { name = place.label, path = place.path, line = line, names = names }
end

--- Record that an error was raised, once.
local function snapshot(value)
  local is_text = type(value) == "string" and not find(value, "stack overflow", 1, true)
  local text = is_text and value or type(value) == "table" and rawget(value, "message")
  if type(text) ~= "string" or seen[value] or #failures == MAX_FAILURES then
    return
  end
  seen[value] = true
  local frames, live, at = {}, {}, nil
  for level = 2, MAX_LEVELS do
    local info = getinfo(level, "Slf")
    if not info then
      break
    end
    local place = info.func and about(info.func) -- None where a tail call was, in Lua 5.1.
    if type(place) == "table" then
      at = at or place.path .. ":" .. info.currentline
      hits[at] = (hits[at] or 0) + (#frames == 0 and 1 or 0)
      if hits[at] > MAX_REPEATED then
        return
      end
      live[place] = true
      if #frames < MAX_FRAMES then
        insert(frames, 1, frame(level, place, info.currentline, info.func))
      end
    end
  end
  if not at then
    return
  end
  end_calls(base, live, cut(text))
  local message = gsub(gsub(text, "^[^\n]-:%d+: ", ""), "^LuaUnit test %u+: ", "")
  local record = { test = "", error = cut(text), message = message, frames = frames }
  record.calls = { unpack(calls) }
  sort(record.calls, function(a, b) -- Tail calls were seen late.
    return a.began < b.began
  end)
  local index = indexes[at .. message] or #failures + 1 -- It may be raised again, as another value.
  failures[index], indexes[at .. message] = { record = record, lines = lines }, index
  write()
end

local function on_event(event, line)
  local info = getinfo(LEVEL, "f")
  local place = info.func and about(info.func)
  if place == "C" then
    -- An error that nothing catches is given to a function in C, such as `debug.traceback`.
    local _, value = getlocal(LEVEL, 1)
    if type(value) == "string" and find(value, "^[^%s:]+:%d+: ") and sub(event, -4) == "call" then
      snapshot(value)
    end
  elseif place and place.name and events < MAX_EVENTS then
    if event == "line" then
      on_line(place, line)
    elseif event == "return" then
      on_return(place, getinfo(LEVEL, "l").currentline)
    elseif event ~= "tail return" then
      on_call(place)
    end
  end
end

local function hook(event, line)
  events = events + 1
  if events == MAX_EVENTS then
    sethook(hook, "c")
    active, calls = {}, {}
  end
  pcall(on_event, event, line)
end

--- Let lines count as those of a test that passed.
local function pass()
  local is_new = false
  for place, numbers in pairs(lines) do
    passed[place] = passed[place] or {}
    for number in pairs(numbers) do
      is_new = is_new or not passed[place][number]
      passed[place][number] = true
    end
  end
  end_calls(base)
  if is_new and #failures > 0 then
    write()
  end
end

--- Do after a protected call what follows from its result.
local function finish(before, ok, ...)
  if ok then
    pcall(pass)
  end
  for index = #active, base + 1, -1 do
    active[index] = nil
  end
  for _, call in pairs(calls) do
    add(before.calls, call)
  end
  lines, calls, counts, base = before.lines, before.calls, before.counts, before.base
  return ok, ...
end

local takes_arguments = select(2, xpcall(select, type, "#", 1, 2)) == 2 -- Not in Lua 5.1.

--- Call a function in protected mode; a handler gets the error where it is raised.
local function protect(handler, func, ...)
  local before = { lines = lines, calls = calls, counts = counts, base = base }
  lines, calls, counts, base = {}, {}, {}, #active
  if takes_arguments then
    return finish(before, xpcall(func, handler, ...))
  end
  local given, count = { ... }, select("#", ...)
  local function call()
    return func(unpack(given, 1, count))
  end
  return finish(before, xpcall(count > 0 and call or func, handler))
end

local function keep(value)
  pcall(snapshot, value)
  return value
end

--- Begin, once.
local function start()
  local registry = debug.getregistry()
  if registry.lcursor_trace then
    return
  end
  registry.lcursor_trace = true
  if jit then
    jit.off() -- Compiled code runs no hooks.
  end
  _G.pcall = function(...)
    return protect(keep, ...)
  end
  _G.xpcall = function(func, handler, ...)
    if type(handler) ~= "function" then
      return xpcall(func, handler, ...)
    end
    return protect(function(value)
      pcall(snapshot, value)
      return handler(value)
    end, func, ...)
  end
  sethook(hook, "crl")
end

pcall(start)
local own = not vim and os.getenv("LCURSOR_LUA_INIT")
if own then -- The user's own LUA_INIT, in whose place this ran.
  local path = match(own, "^@(.*)")
  assert((path and loadfile or loadstring or load)(path or own))()
end
