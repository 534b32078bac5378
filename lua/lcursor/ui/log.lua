-- The log: one file, opened at the first line, rotated at 5 MB. Messages to the user go through
-- notify.lua.

local M = {}

local LEVELS = { debug = 1, info = 2, warn = 3, error = 4 }
local MAX_BYTES = 5 * 1024 * 1024

---@type integer? file descriptor
local fd

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
  fd = vim.uv.fs_open(path, "a", 384) -- 0600: it contains names of files
  return fd
end

---@param level "debug"|"info"|"warn"|"error"
---@param format string
---@param ... any tables are inspected
function M.write(level, format, ...)
  if LEVELS[level] < LEVELS[require("lcursor.config").get().log_level] then
    return
  end
  local args = { ... }
  for i = 1, select("#", ...) do
    if type(args[i]) == "table" then
      args[i] = vim.inspect(args[i], { newline = " ", indent = "" })
    end
  end
  local text = #args > 0 and format:format(unpack(args)) or format
  local file = open()
  if file then
    local line = ("%s %-5s %s\n"):format(os.date("%Y-%m-%d %H:%M:%S"), level, text)
    vim.uv.fs_write(file, line) -- synchronously, which keeps the order of the lines
  end
end

for level in pairs(LEVELS) do
  ---@diagnostic disable-next-line: assign-type-mismatch
  M[level] = function(format, ...)
    M.write(level, format, ...)
  end
end

return M
