-- The window of a run and its winbar; what shows the run where there is no window.

local buffer = require("lcursor.agent.buffer")
local format = require("lcursor.agent.format")
local keymaps = require("lcursor.editor.keymaps")
local lsp_progress = require("lcursor.ui.lsp_progress")
local notify = require("lcursor.ui.notify")
local runs = require("lcursor.agent.runs")
local short = require("lcursor.text").short
local status = require("lcursor.host.status")
local transcript = require("lcursor.ui.transcript")
local ui = require("lcursor.ui.window")
local winbar = require("lcursor.ui.winbar")

local M = {}

local api, uv = vim.api, vim.uv
local INTERVAL_MS = 1000
local MAX_TITLE = 40

local is_ticking, is_started = false, false

--- Return the seconds of work so far: the host sends them with each change of the status.
---@param run lcursor.AgentRun
---@return number
local function seconds_of(run)
  local known = run.status and run.status.seconds or 0
  local is_working = run.id ~= nil and run.state ~= "waiting"
  return known + (is_working and (uv.now() - run.status_ms) / 1000 or 0)
end

---@param run lcursor.AgentRun
local function draw_run(run)
  local bar = {
    state = run.state,
    is_stopping = run.is_stopping,
    waiting = #runs.waiting(run),
    policy = run.policy,
    sandbox = run.sandbox,
    status = run.status,
    seconds = seconds_of(run),
  }
  local parts = format.parts(bar)
  if run.buf then
    winbar.draw(run.buf, short(run.task, MAX_TITLE), parts)
  end
  local token = "agent " .. run.number
  if not run.id or (run.buf and vim.fn.bufwinid(run.buf) > 0) then
    lsp_progress.finish(token, run.state)
  else
    local at = run.status
    local text = at and ("%s, step %d/%d"):format(parts[#parts].text, at.steps, at.max_steps)
    lsp_progress.report(token, "agent: " .. short(run.task, MAX_TITLE), text or run.state)
  end
end

---@return string for the statusline
local function status_text()
  local running, waiting = runs.running(), 0
  for _, run in ipairs(running) do
    waiting = waiting + #runs.waiting(run)
  end
  local name = #running > 1 and ("%d agents"):format(#running) or "agent"
  if #running == 0 then
    return ""
  elseif waiting > 0 then
    return name .. " waiting"
  end
  local at = #running == 1 and running[1].status
  return at and ("%s %d/%d"):format(name, at.steps, at.max_steps) or name
end

--- Draw the winbar of a run, and what the statusline says of all; again each second while one runs.
---@param run lcursor.AgentRun
function M.draw(run)
  draw_run(run)
  status.set_feature("agent", status_text())
  if is_ticking or #runs.running() == 0 then
    return
  end
  is_ticking = true
  notify.later(INTERVAL_MS, function()
    is_ticking = false
    for _, one in ipairs(runs.running()) do
      M.draw(one)
    end
  end)
end

--- Set the options of a window while it shows a run.
---@param run lcursor.AgentRun
---@param win integer
function M.set_options(run, win)
  transcript.set_window_options(win, "v:lua.require'lcursor.agent.buffer'.foldtext()")
  transcript.fold_window(run.buf, win)
  draw_run(run)
end

--- Handle `:edit`, or the end of the buffer: the run continues without it.
---@param run lcursor.AgentRun
---@param buf integer
local function on_unload(run, buf)
  if run.buf ~= buf then
    return
  elseif api.nvim_buf_is_loaded(buf) then
    buffer.set_filetype(buf)
    buffer.render(run, "")
    return vim.iter(vim.fn.win_findbuf(buf)):each(function(win)
      M.set_options(run, win)
    end)
  end
  run.buf = nil
  if api.nvim_buf_is_valid(buf) then
    pcall(api.nvim_buf_delete, buf, { force = true })
  end
end

--- Create the buffer of a run, with its keys.
---@param run lcursor.AgentRun
local function create(run)
  buffer.create(run)
  keymaps.map("agent", run.buf, function(action)
    require("lcursor.agent.keys").press(action)
  end)
  buffer.render(run, "") -- names keys
  local buf = run.buf
  local function on(events, fn)
    local callback = notify.guarded(fn)
    api.nvim_create_autocmd(events, { buffer = buf, callback = callback })
  end
  on("BufWinEnter", function()
    local win = api.nvim_get_current_win()
    if api.nvim_win_get_buf(win) == buf then
      M.set_options(run, win)
    end
  end)
  on("BufEnter", function()
    runs.use(run)
  end)
  on("BufUnload", function()
    vim.schedule(notify.guarded(function()
      on_unload(run, buf)
    end))
  end)
end

--- Lay out hints and winbars again when the width of windows changes.
local function start()
  if is_started then
    return
  end
  is_started = true
  notify.autocmds("agent")("WinResized", function()
    for _, win in ipairs(vim.v.event.windows) do
      local run = runs.of_buffer(api.nvim_win_get_buf(win))
      if run then
        buffer.annotate(run)
        draw_run(run)
      end
    end
  end)
end

---@return integer?
local function window_of(run)
  return ui.find(run.buf)
end

--- Show a run in this tab page, instead of another one that is shown.
---@param run lcursor.AgentRun
---@param opts { window?: table, enter?: boolean }
function M.open(run, opts)
  start()
  if not run.buf then
    create(run)
  end
  runs.use(run)
  local win = ui.find(run.buf)
  if not win then
    win = not opts.window and vim.iter(runs.all()):map(window_of):next() or nil
    if win then
      api.nvim_win_set_buf(win, run.buf)
    else
      win = api.nvim_open_win(run.buf, false, ui.dock(opts.window, " agent "))
    end
    M.set_options(run, win)
    buffer.annotate(run)
    local last = api.nvim_buf_line_count(run.buf)
    api.nvim_win_set_cursor(win, { last, 0 }) -- in the draft: from there the view follows
  end
  if opts.enter ~= false then
    api.nvim_set_current_win(win)
  end
end

--- Close a run of which nothing is known.
---@param run lcursor.AgentRun
function M.discard(run)
  local buf = run.buf
  runs.remove(run)
  run.buf = nil
  if buf then
    ui.close_all(buf)
    api.nvim_buf_delete(buf, { force = true })
  end
  M.draw(run)
end

--- Whether a row of a run is on the screen.
---@param run lcursor.AgentRun
---@param row integer
---@return boolean
function M.is_visible(run, row)
  return vim.iter(api.nvim_tabpage_list_wins(0)):any(function(win)
    return api.nvim_win_get_buf(win) == run.buf
      and row >= vim.fn.line("w0", win) - 1
      and row < vim.fn.line("w$", win)
  end)
end

return M
