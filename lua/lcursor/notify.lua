-- The only caller of vim.notify: errors by code, progress in place.
-- The same code is told once in 30 seconds; each message also goes to the log.

local config = require("lcursor.config")
local log = require("lcursor.log")

local M = {}

local QUIET_MS = 30 * 1000
local SEVERITY = {
  info = vim.log.levels.INFO,
  warn = vim.log.levels.WARN,
  error = vim.log.levels.ERROR,
}

---@type table<string, integer> code -> time it was last told
local told = {}

--- Of two messages at once Neovim makes a hit-enter prompt, which stops the editor. After
--- `:redraw` the second message replaces the first, which stays in :messages.
local function make_way()
  local mode = vim.api.nvim_get_mode()
  if not mode.blocking and not mode.mode:find("^[cr]") then
    vim.cmd.redraw()
  end
end

--- Neovim's own notifier stops the editor with a hit-enter prompt when a text does not fit the
--- command line; a plugin's does not. Neovim's own Lua is compiled in under names that begin with
--- "vim/", or comes from its runtime folder.
---@return integer? cells there are; nil for as many as one likes
local function room()
  local source = debug.getinfo(vim.notify, "S").source
  local is_builtin = vim.startswith(source, "@vim/")
    or vim.startswith(source, "@" .. vim.env.VIMRUNTIME)
  return is_builtin and vim.o.columns * math.max(vim.o.cmdheight, 1) - 12 or nil
end

---@param text string
---@param cells integer
---@return string
local function cut(text, cells)
  if vim.fn.strdisplaywidth(text) <= cells then
    return text
  end
  local short = vim.fn.strcharpart(text, 0, math.max(cells - 1, 0))
  while short ~= "" and vim.fn.strdisplaywidth(short) >= cells do
    short = vim.fn.strcharpart(short, 0, vim.fn.strchars(short) - 1)
  end
  return short .. "…"
end

---@type boolean whether what progress showed is the last that was said
local is_progress = false

---@param message string
---@param hint string
---@param level "info"|"warn"|"error"
local function tell(message, hint, level)
  is_progress = false
  local cells, text = room(), "lcursor: " .. message
  local all = hint ~= "" and (text .. ". " .. hint) or text
  if cells and vim.fn.strdisplaywidth(all) > cells then
    -- What to do matters more than every word of what failed; the log has it whole.
    local rest = cells - vim.fn.strdisplaywidth(hint) - 2
    all = rest > 30 and hint ~= "" and (cut(text, rest) .. ". " .. hint) or cut(all, cells)
  end
  if cells then
    make_way()
  end
  vim.notify(all, SEVERITY[level], { title = "lcursor" })
end

---@param text string
---@param hint? string what to do about it
function M.info(text, hint)
  tell(text, hint or "", "info")
end

---@param text string
function M.warn(text)
  log.warn("%s", text)
  tell(text, "", "warn")
end

--- Tell an error in the words of errors.py: "what failed. what to do."
---@param err lcursor.Error
function M.error(err)
  local text = err.hint ~= "" and (err.message .. ". " .. err.hint) or err.message
  log.write(err.level == "silent" and "debug" or err.level, "%s: %s", err.code, text)
  local now = vim.uv.now()
  if err.level == "silent" or (told[err.code] and now - told[err.code] < QUIET_MS) then
    return
  end
  told[err.code] = now
  tell(err.message, err.hint, err.level)
end

--- Report what is wrong with settings, in one message.
---@param problems lcursor.Problem[]
function M.config_problems(problems)
  if #problems > 0 then
    local messages = vim.tbl_map(function(problem)
      return problem.message
    end, problems)
    local text = table.concat(messages, "; ")
    log.warn("config_invalid: %s", text)
    tell(text, "See :help lcursor-config", "warn")
  end
end

config.on_problems = M.config_problems

--- A callback of ours whose errors are told once instead of stopping the user at every key.
---@generic F: fun(...)
---@param fn F
---@return F
function M.guarded(fn)
  return function(...)
    local ok, err = xpcall(fn, debug.traceback, ...)
    if not ok then
      log.error("%s", err)
      -- Later, or Neovim would say that an autocommand failed.
      vim.schedule(function()
        M.error({
          code = "internal",
          message = "an error in lcursor: " .. err:match("^[^\n]*"),
          hint = "Please report it with what :LCursor log says",
          level = "error",
        })
      end)
    end
  end
end

--- Forget what was told, so that the next failure speaks again (after :LCursor restart).
function M.forget()
  told = {}
end

--- Show how far something is, in one place that is overwritten; the last text stays in :messages.
---@param text string "" clears it, and nothing that was said since
---@param done? boolean
function M.progress(text, done)
  if text == "" and not is_progress then
    return
  end
  is_progress = text ~= ""
  local shown = is_progress and cut("lcursor: " .. text, math.max(vim.o.columns - 12, 20)) or ""
  make_way()
  vim.api.nvim_echo({ { shown } }, done or false, {})
end

return M
