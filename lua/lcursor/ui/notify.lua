-- Messages to the user: the only caller of vim.notify. Each also goes to the log; an error of the
-- same code is shown once in 30 seconds, unless the user waits for an answer.

local config = require("lcursor.config")
local log = require("lcursor.ui.log")
local of_cells = require("lcursor.text").of_cells
local wrap = require("lcursor.text.wrap")

local M = {}

local QUIET_MS = 30 * 1000
local LONG_MS = 10 * 1000 -- a message that needs more than the command line
local READ_MS = 10 * 1000 -- how long a message is left before progress overwrites it
local MAX_WIDTH = 76 -- of its window
local MIN_CELLS = 30 -- of a message before its hint

---@type table<string, integer> code -> time it was last shown
local shown = {}
---@type boolean whether progress is what was shown last
local is_progress = false

---@type { message: string, ms: integer, until_ms: integer } the newest message and the time when
---progress was last reported, and until when it waits
local progress = { message = "", ms = -math.huge, until_ms = 0 }

--- Return whether progress has to wait, since a message was shown after its last report.
---@return boolean
local function must_wait()
  local now, message = vim.uv.now(), vim.fn.execute("1messages")
  if now - progress.ms < READ_MS and message ~= progress.message then
    progress.until_ms = now + READ_MS
  end
  progress.message, progress.ms = message, now
  return now < progress.until_ms
end

--- Let a second message at once replace the first, instead of a hit-enter prompt, which stops the
--- editor. Both stay in :messages.
local function clear_screen_line()
  local mode = vim.api.nvim_get_mode()
  if not mode.blocking and not mode.mode:find("^[cr]") then
    vim.cmd.redraw()
  end
end

---@return integer what the command line can show without a hit-enter prompt
local function echo_cells()
  return vim.o.columns * math.max(vim.o.cmdheight - 1, 0) + vim.v.echospace
end

--- How much text Neovim's own notifier can show without a hit-enter prompt. A plugin's notifier has
--- no such limit. Neovim's own Lua has names that begin with "vim/", or is in its runtime folder.
---@return integer? cells
local function max_cells()
  local source = debug.getinfo(vim.notify, "S").source
  local is_builtin = vim.startswith(source, "@vim/")
    or vim.startswith(source, "@" .. vim.env.VIMRUNTIME)
  return is_builtin and echo_cells() or nil
end

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

--- Join a text and what to do about it; that is kept if the text must be cut.
---@param hint string
---@param cells integer
---@return string
local function join(text, hint, cells)
  local all = hint ~= "" and ("%s. %s"):format(text, hint) or text
  local rest = cells - vim.fn.strdisplaywidth(hint) - 2
  local first = hint:match("^(.-), or ") -- of two ways
  if rest <= MIN_CELLS and first then
    hint, rest = first, cells - vim.fn.strdisplaywidth(first) - 2
  end
  if vim.fn.strdisplaywidth(all) > cells and hint ~= "" and rest > MIN_CELLS then
    return ("%s. %s"):format(cut(text, rest), hint)
  end
  local short = cut(all, cells)
  local sentences = short ~= all and short:match("^.*%. ") or ""
  return #sentences > MIN_CELLS and sentences .. "…" or short
end

---@type integer? window that shows a long message
local long

local function close_long()
  if long and vim.api.nvim_win_is_valid(long) then
    vim.api.nvim_win_close(long, true)
  end
  long = nil
end

--- Show a message that the command line cuts off above it for a while.
---@param text string
local function show_long(text)
  local rows = wrap.rows({ { text } }, math.max(math.min(vim.o.columns - 4, MAX_WIDTH), 2))
  local lines, width = {}, 1
  for _, row in ipairs(rows) do
    local line = of_cells(row)
    table.insert(lines, line)
    width = math.max(width, vim.api.nvim_strwidth(line))
  end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "wipe"
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  local win = vim.api.nvim_open_win(buf, false, {
    relative = "editor",
    anchor = "SE",
    row = vim.o.lines - vim.o.cmdheight - (vim.o.laststatus > 0 and 1 or 0),
    col = vim.o.columns,
    width = width,
    height = math.min(#lines, math.max(vim.o.lines - 4, 1)),
    style = "minimal",
    border = "rounded",
    focusable = false,
    noautocmd = true,
    zindex = 200,
  })
  long = win
  M.later(LONG_MS, function()
    if long == win then
      close_long()
    end
  end)
end

---@param hint string what to do about it
---@param level "info"|"warn"|"error"
local function show(message, hint, level)
  is_progress = false
  local cells, text = max_cells(), "lcursor: " .. message
  local all = hint ~= "" and (text .. ". " .. hint) or text
  local short = cells and join(text, hint, cells) or all
  if cells then
    clear_screen_line()
  end
  -- Without a title, which only some notifiers show: these would name lcursor twice.
  vim.notify(short, vim.log.levels[level:upper()])
  vim.schedule(function() -- no window can be opened while an expression is evaluated
    pcall(close_long)
    if short ~= all then
      pcall(show_long, all)
    end
  end)
end

---@param text string
---@param hint? string what to do about it
function M.info(text, hint)
  show(text, hint or "", "info")
end

---@param text string
---@param hint? string what to do about it
function M.warn(text, hint)
  log.warn("%s", text)
  show(text, hint or "", "warn")
end

---@param err lcursor.Error
---@param is_awaited? boolean whether the user waits for an answer
function M.error(err, is_awaited)
  local text = err.hint ~= "" and (err.message .. ". " .. err.hint) or err.message
  log.write(err.level == "silent" and "debug" or err.level, "%s: %s", err.code, text)
  local now = vim.uv.now()
  local is_repeated = not is_awaited and shown[err.code] and now - shown[err.code] < QUIET_MS
  if err.level == "silent" or is_repeated then
    return
  end
  shown[err.code] = now
  show(err.message, err.hint, err.level)
end

--- Report that a motion has no target, as Neovim does: an error cancels the pending operator.
---@param text string
function M.fail(text)
  is_progress = false
  vim.api.nvim_echo({ { "lcursor: " .. text } }, true, { err = true })
end

-- Report what is wrong with the settings, in one message.
config.on_problems(function(problems)
  local messages = vim.tbl_map(function(problem)
    return problem.message
  end, problems)
  local text = table.concat(messages, "; ")
  log.warn("config_invalid: %s", text)
  show(text, "See :help lcursor-config", "warn")
end)

--- Report that Neovim opens no window from the command-line window, if an error says that.
---@param err string
---@return boolean whether it does
local function is_command_window(err)
  local is_it = err:find("E11: ", 1, true) ~= nil
  if is_it then
    M.warn("this opens a window. Close the command-line window first")
  end
  return is_it
end

--- Run a command of the user.
---@generic T
---@param fn fun(call: T)
---@param call T
function M.run(fn, call)
  local ok, err = pcall(fn, call)
  if not ok and not is_command_window(tostring(err)) then
    error(err, 0)
  end
end

--- Wrap a callback so that its errors are reported once, instead of at every key.
---@generic F: fun(...)
---@param fn F
---@return F
function M.guarded(fn)
  return function(...)
    local ok, err = xpcall(fn, debug.traceback, ...)
    if not ok then
      log.error("%s", err)
      -- Later, or Neovim would report that an autocommand failed.
      vim.schedule(function()
        if is_command_window(err) then
          return
        end
        M.error({
          code = "internal",
          message = "an error in lcursor: " .. err:match("^[^\n]*"),
          hint = "Please report it with the lines from :LCursor log",
          level = "error",
        })
      end)
    end
  end
end

--- Call a function after a while; its errors are reported.
---@param ms integer
---@param fn fun()
function M.later(ms, fn)
  vim.defer_fn(M.guarded(fn), ms)
end

--- Return a function that makes autocommands, whose errors are reported, in a group of ours.
---@param name string
---@return fun(events: string|string[], callback: fun(event: table), opts?: table)
function M.autocmds(name)
  local group = vim.api.nvim_create_augroup("lcursor." .. name, {})
  return function(events, callback, opts)
    local own = { group = group, callback = M.guarded(callback) }
    vim.api.nvim_create_autocmd(events, vim.tbl_extend("error", own, opts or {}))
  end
end

--- Show every error again (after :LCursor restart).
function M.forget()
  shown = {}
end

--- Show progress in the message line, over the report before; the last one stays in :messages. A
--- message that came in between is left for a while.
---@param text string "" clears it, but nothing that was shown since
---@param is_last? boolean
---@param hint? string kept if the text must be cut
---@return boolean whether it was shown
function M.progress(text, is_last, hint)
  local is_early = must_wait() and not is_last
  if is_early or (text == "" and not is_progress) then
    return false
  end
  is_progress = text ~= ""
  hint = hint or ""
  local cells = math.max(echo_cells() - vim.fn.strdisplaywidth(hint), 20)
  local line = is_progress and cut("lcursor: " .. text, cells) .. hint or ""
  clear_screen_line()
  vim.api.nvim_echo({ { line } }, is_last or false, {})
  return true
end

return M
