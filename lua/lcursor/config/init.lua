-- The settings: merged, validated, cached. Resolved at first use, never at start-up.
-- Precedence: defaults < vim.g.lcursor (table or function) < setup(opts) < vim.b.lcursor.

local schema = require("lcursor.config.schema")

local M = {}

---@type lcursor.Opts? what setup() was given
local setup_opts
---@type lcursor.Opts? while the engine is compiled: they select a server, before all others
local interim
---@type lcursor.Config?
local resolved
---@type lcursor.Problem[]
local problems = {}
---@type table[] what the user gave
local given = {}

---@class (exact) lcursor.BufferConfig the settings of a buffer that has vim.b.lcursor
---@field own any the value of vim.b.lcursor
---@field base lcursor.Config what it was merged into
---@field merged lcursor.Config
---@field problems lcursor.Problem[]

---@type table<integer, lcursor.BufferConfig> by buffer
local buffers = {}
---@type lcursor.Problem[]
local unreported = {}
---@type fun(problems: lcursor.Problem[])? set by notify.lua
local on_problems

---@param key string dotted
local function get(tree, key)
  return vim.tbl_get(tree, unpack(vim.split(key, ".", { plain = true })))
end

---@param key string dotted
local function put(tree, key, value)
  local section, name = key:match("^([%w_]+)%.(.*)$")
  if section then
    tree[section] = tree[section] or {}
    tree[section][name] = value
  else
    tree[key] = value
  end
end

---@return lcursor.Config
function M.defaults()
  local tree = {}
  for _, setting in ipairs(schema) do
    put(tree, setting[1], vim.deepcopy(setting[2]))
  end
  return tree --[[@as lcursor.Config]]
end

---@param a string
---@param b string
---@return integer edits between two words (Levenshtein)
local function distance(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      local best = math.min(row[j] + 1, row[j - 1] + 1, diagonal + cost)
      diagonal, row[j] = row[j], best
    end
  end
  return row[#b]
end

---@param candidates string[]
local function nearest(key, candidates)
  table.sort(candidates)
  local best, min = "", math.huge
  for _, candidate in ipairs(candidates) do
    local edits = distance(key, candidate)
    if edits < min then
      best, min = candidate, edits
    end
  end
  return best
end

local function mismatch(expected, value)
  return ("expected %s, found %s"):format(expected, vim.inspect(value))
end

---@param kind "list"|"texts" of strings, without or with names
local function has_texts(kind, value)
  local is_table = type(value) == "table" and (vim.islist(value) or kind == "texts")
  return is_table
    and vim.iter(pairs(value)):all(function(name, one)
      return type(one) == "string" and (kind == "list" or type(name) == "string")
    end)
end

--- Check the fields of a table. Their values are not repeated: one may be a key.
---@param fields table<string, string|string[]>
---@return string? problem
local function check_fields(fields, value, prefix)
  for key, one in pairs(value) do
    local expected = fields[key]
    if not expected then
      local known = vim.tbl_keys(fields)
      table.sort(known)
      return ("%s%s: no such setting, use %s"):format(prefix, key, table.concat(known, ", "))
    end
    if expected == "apis" or expected == "providers" then
      expected = require("lcursor.config.servers")[expected]
    end
    local is_right = type(one) == expected
    if type(expected) == "table" then
      is_right = vim.list_contains(expected, one)
      expected = "one of " .. table.concat(expected, ", ")
    elseif expected == "share" then
      is_right = type(one) == "number" and one >= 0 and one <= 1
      expected = "0 to 1"
    elseif expected == "list" or expected == "texts" then
      is_right = has_texts(expected, one)
      expected = expected == "list" and "a list of texts" or "texts by name"
    end
    if not is_right then
      return ("%s%s: expected %s, found a %s"):format(prefix, key, expected, type(one))
    end
  end
end

---@param setting lcursor.Setting with `rows`
---@return string? problem
local function check_rows(setting, value)
  local either = setting.either
  for name, row in pairs(value) do
    if type(name) ~= "string" or type(row) ~= "table" then
      return ("expected names, each with a table, found a %s at %s"):format(type(row), name)
    elseif setting.names and (not name:find(setting.names) or ("_%s_"):format(name):find("__")) then
      local text = '"%s": a name has lower-case letters, digits, - and single _ between them'
      return text:format(name)
    end
    local problem = check_fields(setting.rows, row, name .. ".")
    if problem then
      return problem
    elseif either and (row[either[1]] == nil) == (row[either[2]] == nil) then
      return ("%s: it needs either a %s or a %s"):format(name, either[1], either[2])
    end
  end
end

---@return string? problem
local function check_entries(setting, value)
  local is_key, default = setting.each == "key", setting[2]
  for name, one in pairs(value) do
    if type(name) ~= "string" then
      return mismatch("a table with names", value)
    elseif is_key and default[name] == nil then
      local known = nearest(name, vim.tbl_keys(default))
      return ('%s: no such key, did you mean "%s"?'):format(name, known)
    elseif is_key and one ~= false and type(one) ~= "string" then
      return ("%s: %s"):format(name, mismatch("a key or false", one))
    elseif not is_key and type(one) ~= setting.each then
      return ("%s: %s"):format(name, mismatch("a " .. setting.each, one))
    end
  end
end

---@return string? problem
local function check(setting, value)
  local default, one_of = setting[2], setting.one_of
  if one_of then
    local is_right = vim.list_contains(one_of, value)
    return not is_right and mismatch("one of " .. table.concat(one_of, ", "), value) or nil
  elseif setting.each == "key" and value == false then
    return nil
  elseif setting.is_function then
    local is_right = value == default or type(value) == "function"
    return not is_right and mismatch("a function", value) or nil
  elseif type(value) ~= type(default) then
    return mismatch("a " .. type(default), value)
  elseif setting.fields then
    return check_fields(setting.fields, value, "")
  elseif setting.rows then
    return check_rows(setting, value)
  elseif setting.each then
    return check_entries(setting, value)
  elseif setting.share then
    return (value < 0 or value > 1) and mismatch("0 to 1", value) or nil
  elseif type(value) == "number" and value ~= math.floor(value) then
    return mismatch("a whole number", value)
  elseif setting.min and value < setting.min and value ~= default then
    return mismatch("at least " .. setting.min, value)
  end
end

--- Return the value to store; a disabled key is an empty one.
---@param old any the value before
local function merged(setting, old, value)
  if setting.each == "key" then
    value = vim.tbl_map(function(lhs)
      return value and lhs or ""
    end, value or setting[2])
  end
  if type(value) == "table" and (setting.each or not vim.islist(value)) then
    return vim.tbl_extend("force", old or {}, value)
  end
  return vim.deepcopy(value)
end

--- Describe a value that is where the table of a section should be, and how to switch it off.
local function describe_section(section, value)
  local text, hints = mismatch("a table", value), {}
  for _, setting in ipairs(value == false and schema or {}) do
    local key, name = setting[1], setting[1]:match("^" .. section .. "%.(.*)$")
    if name == "enabled" then
      hints[1] = key .. " = false switches it off"
    elseif name and vim.list_contains(setting.one_of or {}, "off") then
      hints[1] = key .. ' = "off" switches it off'
    elseif name == "keymap" then
      table.insert(hints, key .. " = false removes its keys")
    end
  end
  return text .. (#hints > 0 and "; " or "") .. table.concat(hints, ", ")
end

--- Check a user's table and copy what is right.
---@param source string for messages, for example "setup()"
---@return lcursor.Problem[]
local function merge(user, into, source)
  local found, known, sections = {}, {}, {}
  for _, setting in ipairs(schema) do
    known[setting[1]] = setting
    sections[setting[1]:match("^([%w_]+)%.") or ""] = true
  end
  local function add(key, text)
    table.insert(found, { key = key, message = ("%s: %s: %s"):format(source, key, text) })
  end
  local function walk(tree, path)
    for name, value in pairs(tree) do
      local key = path .. tostring(name)
      local setting = known[key]
      local problem = setting and check(setting, value)
      if problem then
        add(key, problem)
      elseif setting then
        put(into, key, merged(setting, get(into, key), value))
      elseif type(value) == "table" and sections[key] then
        walk(value, key .. ".")
      elseif sections[key] then
        add(key, describe_section(key, value))
      else
        local names = vim.list_extend(vim.tbl_keys(known), vim.tbl_keys(sections))
        add(key, ('no such setting, did you mean "%s"?'):format(nearest(key, names)))
      end
    end
  end
  walk(user, "")
  return found
end

---@param opts? lcursor.Opts
function M.setup(opts)
  setup_opts = opts
  resolved = nil
end

--- Set what comes before the user's settings while the engine is compiled; nil for nothing.
---@param opts? lcursor.Opts
function M.set_interim(opts)
  interim, resolved = opts, nil
end

local function report_all()
  if on_problems and #unreported > 0 then
    on_problems(unreported)
    unreported = {}
  end
end

--- Set what is called, later, with the problems of the settings, also with those of before.
---@param fn fun(problems: lcursor.Problem[])
function M.on_problems(fn)
  on_problems = fn
  vim.schedule(report_all)
end

--- Report problems later, unless these are the ones of before.
---@param before lcursor.Problem[]
---@param now lcursor.Problem[]
local function report(before, now)
  if #now > 0 and not vim.deep_equal(before, now) then
    vim.list_extend(unreported, now)
    vim.schedule(report_all)
  end
end

---@return lcursor.Config
function M.get()
  if resolved then
    return resolved
  end
  local before = problems
  resolved, problems, given = M.defaults(), {}, {}
  for _, source in ipairs({ { "vim.g.lcursor", vim.g.lcursor }, { "setup()", setup_opts } }) do
    local name, user = source[1], source[2]
    local ok = true
    if type(user) == "function" then
      ok, user = pcall(user)
    end
    if not ok then
      table.insert(problems, { key = name, message = name .. " failed: " .. tostring(user) })
    elseif type(user) == "table" then
      table.insert(given, user)
      vim.list_extend(problems, merge(user, resolved, name))
    elseif user ~= nil then
      table.insert(problems, { key = name, message = name .. ": expected a table" })
    end
  end
  merge(interim or {}, resolved, "the installation")
  report(before, problems)
  return resolved
end

--- Merge the settings of a buffer, if they changed: merging takes milliseconds, and this is called
--- several times per key.
---@return lcursor.BufferConfig?
local function of_buffer(buf)
  local base, own = M.get(), vim.b[buf].lcursor
  if own == nil then
    return nil
  end
  local known = buffers[buf]
  -- Each read of vim.b makes a new table, so contents are compared.
  if known and known.base == base and vim.deep_equal(known.own, own) then
    return known
  end
  local entry = { own = own, base = base, merged = base, problems = {} }
  if type(own) == "table" then
    entry.merged = vim.deepcopy(base)
    entry.problems = merge(own, entry.merged, "vim.b.lcursor")
  else
    local message = "vim.b.lcursor: " .. mismatch("a table", own)
    entry.problems = { { key = "vim.b.lcursor", message = message } }
  end
  buffers[buf] = entry
  report(known and known.problems or {}, entry.problems)
  return entry
end

--- Return the settings for a buffer. They must not be changed.
---@return lcursor.Config
function M.for_buffer(buf)
  local entry = of_buffer(buf)
  return entry and entry.merged or M.get()
end

---@param settings lcursor.Config
local function allows(settings, feature)
  local section = settings[feature]
  return settings.enabled and section.enabled ~= false and section.mode ~= "off"
end

--- Return what a variable `lcursor_enabled` says. Vimscript may have set it to 0 or 1.
---@param buf? integer that of this buffer; nil: the global one
---@return boolean? is_on nil: it is not set
function M.switch(buf)
  local value = (buf and vim.b[buf] or vim.g).lcursor_enabled
  if value ~= nil then
    return value ~= false and value ~= 0
  end
end

--- Return whether a feature is switched off. Completion and next edits are switched by
--- vim.b.lcursor_enabled, else by vim.b.lcursor, else by vim.g.lcursor_enabled, else by the
--- settings; all others only by the settings. A vim.b.lcursor cannot switch on what
--- vim.g.lcursor_enabled switches off, and no variable switches on next edits that the settings
--- switch off.
---@param feature "completion"|"next_edit"|"index"|"chat"|"edit"|"agent"
---@param buf? integer nil is for buffers without settings of their own
---@return "disabled"|"disabled_buffer"|nil code
function M.switched_off(feature, buf)
  local is_completion, is_next_edit = feature == "completion", feature == "next_edit"
  local has_switch = is_completion or is_next_edit
  local all_on, switch = allows(M.get(), feature), nil
  if has_switch then
    switch = M.switch()
  end
  if buf then
    local own_on, own_switch = allows(M.for_buffer(buf), feature), nil
    if has_switch then
      own_switch = M.switch(buf)
    end
    if own_switch ~= nil then
      return not (own_switch and (is_completion or own_on)) and "disabled_buffer" or nil
    elseif own_on ~= all_on and switch ~= false then
      return not own_on and "disabled_buffer" or nil
    end
  end
  if switch == nil or (switch and is_next_edit) then
    switch = all_on
  end
  return not switch and "disabled" or nil
end

--- Whether the user set an option, be it to its default.
---@param key string dotted
---@param buf? integer also in vim.b.lcursor of this buffer
function M.is_set(key, buf)
  M.get()
  local entry = buf and of_buffer(buf)
  local own = entry and type(entry.own) == "table" and entry.own or {}
  return vim.iter({ own, unpack(given) }):any(function(user)
    return get(user, key) ~= nil
  end)
end

--- Return the problems of a buffer's own settings.
---@return lcursor.Problem[]
function M.buffer_problems(buf)
  local entry = of_buffer(buf)
  return entry and entry.problems or {}
end

--- Forget the settings of a buffer that was unloaded.
function M.forget(buf)
  buffers[buf] = nil
end

--- Return the problems of the user's settings.
---@return lcursor.Problem[]
function M.problems()
  M.get()
  return problems
end

--- Return the server that completes; nil: the model runs in the host.
---@return table<string, any>? its row of the table `models`
function M.completion_server()
  local settings = M.get()
  return settings.models[settings.completion.model]
end

--- Return the settings that the Python host reads.
---@return table
function M.for_host()
  local config, sent = M.get(), {}
  for _, setting in ipairs(schema) do
    if setting.host then
      put(sent, setting[1], get(config, setting[1]))
    end
  end
  return sent
end

--- Return the settings, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe()
  return vim.tbl_map(function(setting)
    local text = setting[3]
    if setting.one_of then
      text = text .. " One of " .. table.concat(setting.one_of, ", ") .. "."
    end
    local default = vim.inspect(setting[2], { newline = " ", indent = "" })
    return { name = setting[1], text = text, default = default }
  end, schema)
end

return M
