-- The log: one file, opened at the first line, rotated at 5 MB. The level is checked before
-- anything is formatted. Must not be used to tell the user something: that is notify.lua.

local M = {}

local LEVELS = { debug = 1, info = 2, warn = 3, error = 4 }
local MAX_BYTES = 5 * 1024 * 1024

---@type integer? file descriptor
local fd
---@type string[] the last lines, for health and :LCursor log
local ring = {}

---@return string
function M.path()
  return vim.fs.joinpath(vim.fn.stdpath("log") --[[@as string]], "lcursor.log")
end

---@return integer? fd
local function open()
  if fd then
    return fd
  end
  local path = M.path()
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  local stat = vim.uv.fs_stat(path)
  if stat and stat.size > MAX_BYTES then
    vim.uv.fs_rename(path, path .. ".1")
  end
  fd = vim.uv.fs_open(path, "a", 384) -- 0600: names of files stand in it
  return fd
end

---@param level "debug"|"info"|"warn"|"error"
---@param format string
---@param ... any tables are inspected
function M.write(level, format, ...)
  local least = require("lcursor.config").get().log_level
  if LEVELS[level] < LEVELS[least] then
    return
  end
  local args = { ... }
  for i = 1, select("#", ...) do
    if type(args[i]) == "table" then
      args[i] = vim.inspect(args[i], { newline = " ", indent = "" })
    end
  end
  local text = #args > 0 and format:format(unpack(args)) or format
  local line = ("%s %-5s %s"):format(os.date("%Y-%m-%d %H:%M:%S"), level, text)
  table.insert(ring, line)
  if #ring > 200 then
    table.remove(ring, 1)
  end
  local file = open()
  if file then
    vim.uv.fs_write(file, line .. "\n") -- without a callback, or lines would change places
  end
end

---@param count? integer
---@return string[] the newest lines, oldest first
function M.tail(count)
  return vim.list_slice(ring, math.max(1, #ring - (count or 50) + 1))
end

for level in pairs(LEVELS) do
  ---@diagnostic disable-next-line: assign-type-mismatch
  M[level] = function(format, ...)
    M.write(level, format, ...)
  end
end

return M
