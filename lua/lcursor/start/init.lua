-- `:LCursor`: the start page, a floating window that shows what is set up, what is missing with the
-- key that fixes it, and the keys to know. It is redrawn at each change, and never waits: the facts
-- come from the doctor, a Python process, one by one.

local context = require("lcursor.editor.context")
local doctor = require("lcursor.host.doctor")
local highlights = require("lcursor.ui.highlights")
local host = require("lcursor.host")
local environment = require("lcursor.host.environment")
local keymaps = require("lcursor.editor.keymaps")
local keys = require("lcursor.config.keys")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local rows = require("lcursor.start.rows")
local settings = require("lcursor.config")
local status = require("lcursor.host.status")
local text = require("lcursor.text")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api
local MAX_COLUMNS = 76
local MEASURE_MS = 8000 -- in which the host measures the speed of its model, unless keys are typed
local INDENT = 14 -- columns before the text of a row
local MARKS = {
  ready = { "✓", "LCursorStartReady" },
  missing = { "!", "LCursorStartMissing" },
  busy = { "…", "LCursorStartBusy" },
  none = { " ", "Normal" },
}
-- What to know: group and action of keys.lua, and where they work.
local KEYS = {
  { "suggestion", "accept", "at ghost text" },
  { "next_edit", "accept", "at a next edit" },
  { "hunk", "accept", "at a hunk" },
  { "hunk", "next", "at hunks" },
}
local COMMANDS = {
  { ":LCChat", "ask about the code" },
  { ":LCEdit", "change code; for tasks, :LCursor agent" },
}
-- Keys in the frame; in a narrow window only the first ones.
local FOOTER =
  { { "t", "tutor" }, { "g?", "help" }, { "q", "close" }, { "h", "health" }, { "l", "log" } }

---@type lcursor.StartPage?
local page
---@type table<string, string> progress of downloads, by model; they go on when the page is closed
local pulls = {}

local probe

---@param state lcursor.HostState
---@return boolean whether the doctor may find something new in this state
local function is_settled(state)
  return vim.list_contains({ "ready", "failed", "absent", "stopped" }, state)
end

--- Run the doctor again once the host has measured the speed of its model, on which its advice for
--- this machine depends.
---@param it lcursor.StartPage
local function probe_later(it)
  local fact = (it.facts.hardware or {})[1]
  local is_unknown = fact and not fact.gpu and fact.recommended.is_measured == false
  if is_unknown and not it.has_waited and status.get().state == "ready" then
    it.has_waited = true
    notify.later(MEASURE_MS, function()
      if page == it then
        probe()
      end
    end)
  end
end

--- Ask the doctor for facts, and the host for the state of the chat server, if they can run.
probe = function()
  local it = assert(page)
  local python, missing = doctor.interpreter()
  it.missing, it.python = missing, environment.python()
  if host.info().pid and settings.get().chat.server ~= "off" then
    requests.ask("server.ask", { ["do"] = "status" }, function(answer)
      it.server = answer
      M.draw()
    end, function() end)
  end
  if not python or it.probe and it.probe.is_running then
    return
  end
  it.probe = doctor.follow(python, it.path, function(fact)
    it.facts[fact.section] = it.probe.facts[fact.section]
    M.draw()
  end, function()
    it.facts = it.probe.facts
    M.draw()
    probe_later(it)
  end)
end

-- Actions ---------------------------------------------------------------------------------------

---@param is_used boolean the host uses it as soon as it is here
local function pull(name, is_used)
  local python = page and page.python
  if not python then
    return
  end
  pulls[name] = ""
  environment.pull(python, name, function(line)
    pulls[name] = line:match("%(%d+ %%%)") or ""
    M.draw()
  end, function(err)
    pulls[name] = nil
    if err then
      notify.warn(("%s was not downloaded: %s"):format(name, err))
    else
      notify.info(name .. " is downloaded")
    end
    if not err and (status.get().state == "failed" or is_used and host.info().job) then
      host.restart() -- a missing completion model may be here now, or a better one
    end
    if page then
      probe()
      M.draw()
    end
  end)
end

---@param fix lcursor.StartFix
local function run(fix)
  fix.run()
  M.draw()
end

-- Keys that close the page and run a command.
local LEAVE = {
  t = "LCursor tutor",
  ["g?"] = "help lcursor-quickstart",
  h = "checkhealth lcursor",
  l = "LCursor log",
}

-- Drawing ---------------------------------------------------------------------------------------

---@param lines lcursor.Cells[]
---@param found lcursor.StartRow
---@return integer count of added lines
local function add_row(lines, found, width)
  local before = #lines
  local wrapped = text.wrap(found.text, width - INDENT - 1)
  local mark = MARKS[found.state]
  for i, part in ipairs(wrapped) do
    local head = i == 1
        and { { "  " }, mark, { (" %-10s"):format(found.name), "LCursorStartTitle" } }
      or { { (" "):rep(INDENT) } }
    table.insert(lines, vim.list_extend(head, { { part } }))
  end
  if found.fix then
    local label = found.fix.key .. " " .. found.fix.label
    local used = INDENT + api.nvim_strwidth(wrapped[#wrapped])
    local gap = width - 2 - used - api.nvim_strwidth(label)
    if gap < 2 then
      table.insert(lines, {})
      gap = INDENT
    end
    local cells = { { (" "):rep(gap) }, { found.fix.key, "LCursorStartKey" } }
    vim.list_extend(lines[#lines], vim.list_extend(cells, { { " " .. found.fix.label } }))
  end
  return #lines - before
end

---@param lines lcursor.Cells[]
local function add_keys(lines, buf, width)
  local function add(lhs, label)
    local shown = ("  %-" .. INDENT - 2 .. "s"):format(lhs)
    table.insert(lines, { { shown, "LCursorStartKey" }, { label } })
  end
  table.insert(lines, { { "  Keys and commands to know", "LCursorStartTitle" } })
  for _, entry in ipairs(KEYS) do
    local group, action = entry[1], entry[2]
    local lhs = api.nvim_buf_is_valid(buf) and keymaps.shown(group, action, buf) or nil
    local key = vim.iter(keys.groups[group].keys):find(function(each)
      return each[1] == action
    end)
    local label, when = key[4]:lower(), lhs and entry[3] or "no key is mapped"
    if width >= INDENT + 20 + #when then
      label = ("%-20s%s"):format(label, when)
    end
    add(lhs or "-", label)
  end
  for _, entry in ipairs(COMMANDS) do
    for i, part in ipairs(text.wrap(entry[2], width - INDENT)) do
      add(i == 1 and entry[1] or "", part)
    end
  end
end

---@return lcursor.Cells
local function footer(width)
  local cells, used = {}, 1
  for _, entry in ipairs(FOOTER) do
    local key, label = " " .. entry[1], " " .. entry[2] .. " "
    used = used + #key + #label
    if used <= width then
      vim.list_extend(cells, { { key, "LCursorStartKey" }, { label, "Normal" } })
    end
  end
  return cells
end

---@return vim.api.keyset.win_config
local function layout(width, height)
  height = math.max(math.min(height, vim.o.lines - vim.o.cmdheight - 2), 1)
  return {
    relative = "editor",
    width = width,
    height = height,
    col = math.max(math.floor((vim.o.columns - width - 2) / 2), 0),
    row = math.max(math.floor((vim.o.lines - vim.o.cmdheight - height - 2) / 2), 0),
    footer = footer(width),
  }
end

local function page_width()
  return math.max(math.min(MAX_COLUMNS, vim.o.columns - 4), 30)
end

--- Draw the page again, if it is open.
function M.draw()
  local it = page
  if not it or not api.nvim_win_is_valid(it.win) then
    return
  end
  local width, lines = page_width(), {}
  it.fixes = {}
  for _, found in ipairs(rows.rows(it)) do
    for _ = 1, add_row(lines, found, width) do
      table.insert(it.fixes, found.fix or false)
    end
  end
  table.insert(lines, {})
  add_keys(lines, it.buf, width)
  for _, cells in ipairs(lines) do
    for i, cell in ipairs(cells) do
      cells[i] = { cell[1], cell[2] or "Normal" }
    end
  end
  window.set_cells(it.page_buf, lines)
  api.nvim_win_set_config(it.win, layout(width, #lines))
end

--- Follow the changes of the host, the installation and the index.
---@return fun() stop
local function follow()
  local is_pending, state = false, status.get().state
  return status.listen(function()
    if is_pending then
      return
    end
    is_pending = true
    vim.schedule(notify.guarded(function()
      is_pending = false
      if page and status.get().state ~= state then
        local before = state
        state = status.get().state
        if is_settled(state) or before == "installing" then
          probe()
        end
      end
      M.draw()
    end))
  end)
end

---@param it lcursor.StartPage
local function map(it)
  local function set(lhs, fn)
    local opts = { buffer = it.page_buf, nowait = true }
    vim.keymap.set("n", lhs, notify.guarded(fn), opts)
  end
  for lhs, command in pairs(LEAVE) do
    set(lhs, function()
      M.close()
      vim.cmd(command)
    end)
  end
  for _, lhs in ipairs({ "q", "<Esc>" }) do
    set(lhs, M.close)
  end
  for _, lhs in ipairs({ "i", "r", "o", "m", "x", "e", "c" }) do
    set(lhs, function()
      for _, fix in ipairs(it.fixes) do
        if fix and fix.key == lhs then
          return run(fix)
        end
      end
    end)
  end
  set("<CR>", function()
    local fix = it.fixes[api.nvim_win_get_cursor(it.win)[1]]
    if fix then
      run(fix)
    end
  end)
end

--- Close the page.
function M.close()
  if page and api.nvim_win_is_valid(page.win) then
    api.nvim_win_close(page.win, true)
  end
end

--- Run `:LCursor`.
function M.open()
  if page and api.nvim_win_is_valid(page.win) then
    api.nvim_set_current_win(page.win)
    return
  end
  highlights.apply()
  local path, buf = context.here(), api.nvim_get_current_buf()
  local config = vim.tbl_extend("error", layout(page_width(), 10), {
    style = "minimal",
    border = "rounded",
    title = (" lcursor %s "):format(host.version()),
  })
  local page_buf, win = window.scratch(config, true)
  vim.bo[page_buf].filetype = "lcursor-start"
  vim.wo[win][0].wrap = false
  page = {
    path = path,
    buf = buf,
    win = win,
    page_buf = page_buf,
    facts = {},
    fixes = {},
    pull = pull,
    pulls = pulls,
  }
  if settings.get().enabled and settings.get().index.enabled then
    require("lcursor.index").start()
  end
  local it, stop = page, follow()
  api.nvim_create_autocmd("BufWipeout", {
    buffer = page_buf,
    once = true,
    callback = function()
      stop()
      page = nil
      if it.probe and it.probe.is_running and it.probe.job then
        it.probe.job:kill("sigterm")
      end
    end,
  })
  notify.autocmds("start")("VimResized", M.draw)
  map(it)
  probe()
  M.draw()
  for i, fix in ipairs(it.fixes) do
    if fix then
      api.nvim_win_set_cursor(win, { i, 0 })
      break
    end
  end
end

return M
