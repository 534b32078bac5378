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
---@return string nearest key of the schema
local function nearest(key)
  local best, least = "", math.huge
  local function consider(candidate)
    local edits = distance(key, candidate)
    if edits < least then
      best, least = candidate, edits
    end
  end
  for _, setting in ipairs(M.schema) do
    consider(setting.key)
    consider(setting.key:match("^%w+")) -- the table that it is in
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
  elseif type(value) ~= setting.type then
    return ("expected a %s, found %s"):format(setting.type, vim.inspect(value))
  elseif setting.rows then
    return row_complaint(setting.rows, value)
  elseif setting.share then
    if value < 0 or value > 1 then
      return ("expected 0 to 1, found %s"):format(vim.inspect(value))
    end
  elseif setting.type == "number" and value ~= math.floor(value) then
    return ("expected a whole number, found %s"):format(vim.inspect(value))
  elseif setting.min and value < setting.min then
    return ("expected at least %d, found %s"):format(setting.min, vim.inspect(value))
  end
end

--- Check a user's table and copy what is right into `into`.
---@param user table
---@param into table
---@param where string for the message, for example "setup()"
---@return lcursor.Problem[]
local function merge(user, into, where)
  local found, known = {}, {}
  local function add(key, text)
    table.insert(found, { key = key, message = ("%s: %s: %s"):format(where, key, text) })
  end
  for _, setting in ipairs(M.schema) do
    known[setting.key] = setting
  end
  local function walk(tree, path)
    for name, value in pairs(tree) do
      local key = path == "" and tostring(name) or (path .. "." .. tostring(name))
      local setting = known[key]
      if setting then
        local text = complaint(setting, value)
        if text then
          add(key, text)
        elseif setting.type == "table" and not vim.islist(value) then
          put(into, key, vim.tbl_extend("force", get(into, key) or {}, value))
        else
          put(into, key, vim.deepcopy(value))
        end
      elseif type(value) == "table" and type(get(M.defaults(), key)) == "table" then
        walk(value, key)
      else
        add(key, ('no such setting, did you mean "%s"?'):format(nearest(key)))
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

--- The settings as one buffer sees them.
---@param buf integer
---@return lcursor.Config
function M.for_buffer(buf)
  local config, own = M.get(), vim.b[buf].lcursor
  if type(own) ~= "table" then
    return config
  end
  local copy = vim.deepcopy(config)
  merge(own, copy, "vim.b.lcursor")
  return copy
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
