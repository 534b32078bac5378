-- The settings: one schema from which defaults, validation and the help are made.
-- Precedence: defaults < vim.g.lcursor (table or function) < setup(opts) < vim.b.lcursor.
-- Resolved at first use, never at start-up. Must not require anything of ours.

local M = {}

---@type lcursor.Setting[]
M.schema = require("lcursor.config.schema")

---@type lcursor.Opts? what setup() was given
local opts_of_setup
---@type lcursor.Config?
local resolved
---@type lcursor.Problem[]
local problems = {}

---@class (exact) lcursor.BufferConfig the settings of a buffer that has vim.b.lcursor
---@field own any what vim.b.lcursor was
---@field base lcursor.Config what it was merged into
---@field merged lcursor.Config
---@field problems lcursor.Problem[]

---@type table<integer, lcursor.BufferConfig> by buffer
local of_buffers = {}

--- Called, later, with what is wrong in a vim.b.lcursor that was read for the first time;
--- notify.lua sets it.
---@type fun(problems: lcursor.Problem[])
M.on_problems = function() end

---@param tree table
---@param key string dotted path
---@return any
local function get(tree, key)
  local node = tree
  for part in vim.gsplit(key, ".", { plain = true }) do
    if type(node) ~= "table" then
      return nil
    end
    node = node[part]
  end
  return node
end

---@param tree table
---@param key string dotted path
---@param value any
local function put(tree, key, value)
  local parts = vim.split(key, ".", { plain = true })
  for i = 1, #parts - 1 do
    tree[parts[i]] = tree[parts[i]] or {}
    tree = tree[parts[i]]
  end
  tree[parts[#parts]] = value
end

---@return lcursor.Config
function M.defaults()
  local tree = {}
  for _, setting in ipairs(M.schema) do
    put(tree, setting.key, vim.deepcopy(setting.default))
  end
  return tree --[[@as lcursor.Config]]
end

---@param a string
---@param b string
---@return integer edits between the two words
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
      diagonal = row[j]
      row[j] = best
    end
  end
  return row[#b]
end

---@param key string
---@param candidates string[]
---@return string the candidate with the least edits
local function nearest(key, candidates)
  local best, least = "", math.huge
  table.sort(candidates)
  for _, candidate in ipairs(candidates) do
    local edits = distance(key, candidate)
    if edits < least then
      best, least = candidate, edits
    end
  end
  return best
end

---@param rows table<string, string|string[]>
---@param value table
---@return string? complaint
local function row_complaint(rows, value)
  for name, row in pairs(value) do
    if type(name) ~= "string" or type(row) ~= "table" then
      return ("expected names, each with a table, found a %s at %s"):format(type(row), name)
    end
    for key, one in pairs(row) do
      local kind = rows[key]
      if not kind then
        local known = vim.tbl_keys(rows)
        table.sort(known)
        return ("%s.%s: no such setting, use %s"):format(name, key, table.concat(known, ", "))
      end
      local is_right = type(one) == kind
      if type(kind) == "table" then
        is_right, kind = vim.tbl_contains(kind, one), "one of " .. table.concat(kind, ", ")
      end
      if not is_right then
        -- What stands there may be a key: it is not repeated.
        return ("%s.%s: expected %s, found a %s"):format(name, key, kind, type(one))
      end
    end
  end
end

---@param setting lcursor.Setting
---@param value table
---@return string? complaint
local function entry_complaint(setting, value)
  local is_key = setting.each == "key"
  for name, one in pairs(value) do
    if type(name) ~= "string" then
      return ("expected a table with names, found %s"):format(vim.inspect(value))
    elseif is_key and setting.default[name] == nil then
      return ('%s: no such key, did you mean "%s"?'):format(
        name,
        nearest(name, vim.tbl_keys(setting.default))
      )
    elseif is_key and one ~= false and type(one) ~= "string" then
      return ("%s: expected a key or false, found %s"):format(name, vim.inspect(one))
    elseif not is_key and type(one) ~= setting.each then
      return ("%s: expected a %s, found %s"):format(name, setting.each, vim.inspect(one))
    end
  end
end

---@param setting lcursor.Setting
---@param value any
---@return string? complaint
local function complaint(setting, value)
  if type(setting.type) == "table" then
    local allowed = setting.type --[[@as string[] ]]
    if not vim.tbl_contains(allowed, value) then
      return ("expected one of %s, found %s"):format(
        table.concat(allowed, ", "),
        vim.inspect(value)
      )
    end
  elseif setting.type == "key" then
    if value ~= false and type(value) ~= "string" then
      return ("expected a key or false, found %s"):format(vim.inspect(value))
    end
  elseif type(value) ~= setting.type then
    return ("expected a %s, found %s"):format(setting.type, vim.inspect(value))
  elseif setting.rows then
    return row_complaint(setting.rows, value)
  elseif setting.each then
    return entry_complaint(setting, value)
  elseif setting.share then
    if value < 0 or value > 1 then
      return ("expected 0 to 1, found %s"):format(vim.inspect(value))
    end
  elseif setting.type == "number" and value ~= math.floor(value) then
    return ("expected a whole number, found %s"):format(vim.inspect(value))
  elseif setting.min and value < setting.min and value ~= setting.default then
    return ("expected at least %d, found %s"):format(setting.min, vim.inspect(value))
  end
end

--- A key that is switched off is an empty one, for all who map keys.
---@param setting lcursor.Setting
---@param value any
---@return any
local function normalize(setting, value)
  if setting.type == "key" then
    return value or ""
  elseif setting.each == "key" then
    return vim.tbl_map(function(lhs)
      return lhs or ""
    end, value)
  end
  return vim.deepcopy(value)
end

--- Check a user's table and copy what is right into `into`.
---@param user table
---@param into table
---@param where string for the message, for example "setup()"
---@return lcursor.Problem[]
local function merge(user, into, where)
  local found, known = {}, {}
  local sections = {} ---@type table<string, boolean> the tables that settings are in
  local function add(key, text)
    table.insert(found, { key = key, message = ("%s: %s: %s"):format(where, key, text) })
  end
  for _, setting in ipairs(M.schema) do
    known[setting.key] = setting
    sections[setting.key:match("^(%w+)%.") or ""] = true
  end
  local function walk(tree, path)
    for name, value in pairs(tree) do
      local key = path == "" and tostring(name) or (path .. "." .. tostring(name))
      local setting = known[key]
      if setting then
        local text = complaint(setting, value)
        if text then
          add(key, text)
        elseif setting.each or setting.type == "table" and not vim.islist(value) then
          local all = vim.tbl_extend("force", get(into, key) or {}, normalize(setting, value))
          put(into, key, all)
        else
          put(into, key, normalize(setting, value))
        end
      elseif type(value) == "table" and sections[key] then
        walk(value, key)
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
  opts_of_setup = opts
  resolved = nil
end

---@return lcursor.Config
function M.get()
  if resolved then
    return resolved
  end
  local config = M.defaults()
  problems = {}
  local sources = { { "vim.g.lcursor", vim.g.lcursor }, { "setup()", opts_of_setup } }
  for _, source in ipairs(sources) do
    local where, user = source[1], source[2]
    if type(user) == "function" then
      local ok, result = pcall(user)
      user = result
      if not ok then
        user = nil
        table.insert(problems, { key = where, message = where .. " failed: " .. tostring(result) })
      end
    end
    if type(user) == "table" then
      vim.list_extend(problems, merge(user, config, where))
    elseif user ~= nil then
      table.insert(problems, { key = where, message = where .. ": expected a table" })
    end
  end
  resolved = config
  return config
end

--- What a buffer's own settings make of the others. Merging takes milliseconds and this is called
--- several times per key, so it is done again only when either has changed.
---@param buf integer
---@return lcursor.BufferConfig?
local function of_buffer(buf)
  local base, own = M.get(), vim.b[buf].lcursor
  if own == nil then
    return nil
  end
  local known = of_buffers[buf]
  -- Each read of vim.b makes a new table, so contents are compared.
  if known and known.base == base and vim.deep_equal(known.own, own) then
    return known
  end
  local entry = { own = own, base = base, merged = base, problems = {} }
  if type(own) == "table" then
    entry.merged = vim.deepcopy(base)
    entry.problems = merge(own, entry.merged, "vim.b.lcursor")
  else
    local message = "vim.b.lcursor: expected a table, found " .. vim.inspect(own)
    entry.problems = { { key = "vim.b.lcursor", message = message } }
  end
  of_buffers[buf] = entry
  local is_new = not known or not vim.deep_equal(known.problems, entry.problems)
  if is_new and #entry.problems > 0 then
    vim.schedule(function()
      M.on_problems(entry.problems)
    end)
  end
  return entry
end

--- The settings as one buffer sees them. Must not be changed.
---@param buf integer
---@return lcursor.Config
function M.for_buffer(buf)
  local entry = of_buffer(buf)
  return entry and entry.merged or M.get()
end

--- What is wrong with a buffer's own settings.
---@param buf integer
---@return lcursor.Problem[]
function M.buffer_problems(buf)
  local entry = of_buffer(buf)
  return entry and entry.problems or {}
end

--- Forget the settings of a buffer (it was unloaded).
---@param buf integer
function M.forget(buf)
  of_buffers[buf] = nil
end

--- What is wrong with the user's settings, for start-up and health.
---@return lcursor.Problem[]
function M.problems()
  M.get()
  return problems
end

--- The part of the settings that the Python half reads.
---@return table
function M.for_host()
  local config, wire = M.get(), {}
  for _, setting in ipairs(M.schema) do
    if setting.wire then
      put(wire, setting.key, get(config, setting.key))
    end
  end
  return wire
end

--- The settings, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe()
  return vim.tbl_map(function(setting)
    local text = setting.desc
    if type(setting.type) == "table" then
      text = text .. " One of " .. table.concat(setting.type, ", ") .. "."
    end
    local default = vim.inspect(setting.default, { newline = " ", indent = "" })
    return { name = setting.key, text = text, default = default }
  end, M.schema)
end

return M
