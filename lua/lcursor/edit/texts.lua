-- The text of a buffer as it is now, read once for all who want it in one go: of 20,000 lines that
-- takes milliseconds. Also in pieces, for who can wait. Changes nothing.

local diff = require("lcursor.edit.diff")
local notify = require("lcursor.notify")

local M = {}

local api = vim.api
local AT_ONCE = 10000 -- lines
local PAUSE_MS = 1
local KEPT_MS = 100

---@class (exact) lcursor.EditRead a text as it was read
---@field buf integer
---@field tick integer
---@field lines string[] nobody changes them
---@field text? string
---@field digest? string

---@type lcursor.EditRead?
local last
local is_due = false

---@param buf integer
---@return lcursor.EditRead?
local function known(buf)
  local is_now = last and last.buf == buf and last.tick == api.nvim_buf_get_changedtick(buf)
  return is_now and last or nil
end

--- Keep a text for who else wants it now. By a timer, since Neovim draws no screen while anything
--- is scheduled.
---@param read lcursor.EditRead
local function keep(read)
  last = read
  if not is_due then
    is_due = true
    vim.defer_fn(function()
      is_due, last = false, nil
    end, KEPT_MS)
  end
end

---@param buf integer
---@return lcursor.EditRead
local function all(buf)
  local read = known(buf)
  if not read then
    local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
    read = { buf = buf, tick = api.nvim_buf_get_changedtick(buf), lines = lines }
    keep(read)
  end
  return read
end

---@param lines string[]
---@return boolean
local function has_nul(lines)
  for i = 1, #lines do
    local line = lines[i]
    if line:find("\n", 1, true) or line:find("\0", 1, true) then -- the API says either
      return true
    end
  end
  return false
end

---@param lines string[] some of which have NULs
---@return string
local function with_nuls(lines)
  local out = {}
  for i, line in ipairs(lines) do
    out[i] = line:gsub("\n", "\0")
  end
  return table.concat(out, "\n")
end

--- The lines of a buffer.
---@param buf integer
---@return string[] not to be changed
function M.lines(buf)
  return all(buf).lines
end

---@param buf integer
---@return boolean whether it is no text
function M.has_nul(buf)
  return has_nul(all(buf).lines)
end

--- All of it as one string, a newline between lines: so it crosses the wire at once.
---@param buf integer
---@return string
function M.joined(buf)
  local read = all(buf)
  if not read.text then
    read.text = has_nul(read.lines) and with_nuls(read.lines) or table.concat(read.lines, "\n")
  end
  return read.text
end

--- What its lines are known by, on either side.
---@param buf integer
---@return string
function M.digest(buf)
  local read = all(buf)
  read.digest = read.digest or diff.digest(read.lines)
  return read.digest
end

--- Read a long text in pieces, so that both are there for `done`; anew where it changes meanwhile.
---@param buf integer
---@param done fun() not called where the buffer is gone
function M.prepare(buf, done)
  local tick, lines = api.nvim_buf_get_changedtick(buf), {} ---@type integer, string[]
  local function later(fn)
    vim.defer_fn(
      notify.guarded(function()
        if not api.nvim_buf_is_loaded(buf) then
          return
        elseif api.nvim_buf_get_changedtick(buf) ~= tick then
          return M.prepare(buf, done)
        end
        fn()
      end),
      PAUSE_MS
    )
  end
  local function step()
    vim.list_extend(lines, api.nvim_buf_get_lines(buf, #lines, #lines + AT_ONCE, false))
    if #lines < api.nvim_buf_line_count(buf) then
      return later(step)
    end
    later(function()
      local digest = diff.digest(lines)
      later(function()
        keep({ buf = buf, tick = tick, lines = lines, digest = digest })
        done()
      end)
    end)
  end
  step()
end

return M
