-- What a user does with open hunks: go to them, accept and reject them, whole or in part, by key,
-- operator and text object, with a count and with `.`; change their new lines before.

local apply = require("lcursor.edit.apply")
local files = require("lcursor.ui.open")
local hints = require("lcursor.edit.hints")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local proposals = require("lcursor.edit.proposals")
local track = require("lcursor.edit.track")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api
local SELF = "v:lua.require'lcursor.edit.hunks'."
local MAX_EDIT_ROWS = 15

---@return integer
local function cursor_row()
  return api.nvim_win_get_cursor(0)[1] - 1
end

--- Return the hunk that the cursor is at.
---@return lcursor.Hunk?
---@return integer? index
function M.at_cursor()
  return track.at(proposals.hunks(api.nvim_get_current_buf()), cursor_row())
end

--- Scroll until the new lines of a hunk are visible too, and one more line for its keys.
---@param hunk? lcursor.Hunk nil: the one at the cursor
function M.reveal(hunk)
  hunk = hunk or M.at_cursor()
  if not hunk then
    return
  end
  local below = math.max(hunk.last - 1, 0) - cursor_row() + #hunk.new + 1
  local hidden = vim.fn.winline() + below - api.nvim_win_get_height(0)
  local by = math.min(hidden, vim.fn.winline() - 1 - vim.o.scrolloff)
  if by > 0 then
    vim.cmd(("normal! %d\5"):format(by)) -- CTRL-E
  end
end

--- Scroll until the new lines of the first hunk are visible, if its row is: at the end of a window
--- they are below it.
function M.reveal_first()
  local hunk = proposals.hunks(api.nvim_get_current_buf())[1]
  local line = hunk and hints.row(0, hunk) + 1
  if line and line >= vim.fn.line(".") and line <= vim.fn.line("w$") then
    M.reveal(hunk)
  end
end

local function go(hunk)
  vim.cmd("normal! m'")
  local row = hints.row(0, hunk)
  local line = api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ""
  api.nvim_win_set_cursor(0, { row + 1, #line:match("^%s*") })
  vim.cmd("normal! zv")
  M.reveal(hunk)
end

--- Return the file with open hunks after, or before, the current one.
---@return lcursor.EditPart?
local function neighbor(by)
  local buf, paths, here, parts = api.nvim_get_current_buf(), {}, nil, {}
  for _, part in ipairs(proposals.parts()) do
    if proposals.open_in(part) > 0 and not paths[part.file.path] then
      paths[part.file.path] = true
      table.insert(parts, part)
      here = part.buf == buf and #parts or here
    end
  end
  if #parts == 0 or (here and #parts == 1) then
    return nil
  end
  local start = here or (by > 0 and 0 or 1)
  return parts[(start - 1 + by) % #parts + 1]
end

--- Enter a window of this tab page that shows a buffer.
---@param buf? integer
---@return boolean whether there is one
local function enter(buf)
  local win = buf and vim.fn.bufwinid(buf) or -1
  return win > 0 and pcall(api.nvim_set_current_win, win)
end

--- Open the file of a part, where a window of this tab page shows it.
---@param command? lcursor.OpenCommand other than "edit": always in a new window
---@return boolean
local function open(part, command)
  local opts = { command = command, create = part.file.kind == "create" }
  local win, problem = files.file(part.buf or part.file.path, opts)
  if not win then
    notify.warn(assert(problem))
  end
  return win ~= nil
end

--- Go to the first open hunk of a proposal, where a window of this tab page shows its file.
---@param proposal lcursor.EditProposal
---@return boolean whether there is one
function M.show(proposal)
  for _, part in ipairs(proposal.parts) do
    local hunk = vim.iter(part.hunks):find(function(one)
      return one.state == "open"
    end)
    if hunk and enter(part.buf) then
      go(hunk)
      return true
    end
  end
  return false
end

--- Go to a hunk, wherever its file is.
---@param part lcursor.EditPart
---@param hunk? lcursor.Hunk nil: only to the file
---@param command? lcursor.OpenCommand
function M.go_to(part, hunk, command)
  if open(part, command) and hunk and (hunk.state == "open" or hunk.state == "conflict") then
    go(hunk)
  end
end

--- Whether a motion completes an operator or extends a selection: it must not leave the buffer.
local function is_motion()
  local mode = api.nvim_get_mode().mode
  return mode:find("^no") ~= nil or mode:find("^[vV\22]") ~= nil
end

--- Go to a hunk, or report that there is none.
---@param hunk? lcursor.Hunk of this buffer
local function go_or_report(hunk, problem)
  if hunk then
    go(hunk)
  elseif is_motion() then
    notify.fail(problem)
  else
    notify.info(problem)
  end
end

---@return lcursor.Hunk? the next in this buffer, or the one before
local function beyond(row, by)
  local hunks = vim.iter(proposals.hunks(api.nvim_get_current_buf()))
  return (by > 0 and hunks or hunks:rev()):find(function(hunk)
    local at = hints.row(0, hunk)
    return by > 0 and at > row or by < 0 and at < row
  end)
end

--- Go to the next open hunk, in this file, then in the others, then from the top again; as a motion
--- only in this file.
---@param by integer how many; below 0 backwards
function M.next(by)
  local step, hunk, row, is_here = by < 0 and -1 or 1, nil, cursor_row(), is_motion()
  for _ = 1, math.abs(by) do
    hunk = beyond(row, step)
    if not hunk and is_here then
      break
    elseif not hunk then
      local part = neighbor(step)
      if part and not open(part) then
        return
      end
      hunk = beyond(step > 0 and -1 or api.nvim_buf_line_count(0), step)
    end
    row = hunk and hints.row(0, hunk) or row
  end
  go_or_report(hunk, is_here and "no further hunk in this file" or "no open hunks")
end

--- Go to an end of the open hunks of this buffer.
---@param by integer above 0: to the last one; below 0: to the first
function M.go_to_end(by)
  local hunks = proposals.hunks(api.nvim_get_current_buf())
  go_or_report(hunks[by > 0 and #hunks or 1], "no open hunks")
end

---@param state lcursor.HunkState
---@return lcursor.Hunk[]
local function in_state(hunks, state)
  return vim.tbl_filter(function(hunk)
    return hunk.state == state
  end, hunks)
end

--- Accept the open ones of some hunks of a buffer.
---@param buf integer
---@param hunks lcursor.Hunk[]
---@return string? left which are in conflict
---@return string? problem why an open one was not accepted
function M.accept_open(buf, hunks)
  local count = #in_state(hunks, "conflict")
  local left = count > 0 and many(count, "hunk") .. " in conflict, left out" or nil
  return left, apply.accept(buf, in_state(hunks, "open"))
end

---@param what "accept"|"reject"
local function decide(what, buf, hunks)
  if #hunks == 0 then
    local part = #proposals.hunks(buf) == 0 and neighbor(1)
    local hint = part and ("Next one: %s, :LCursor hunk next"):format(part.file.name) or nil
    return notify.info("no open hunk here", hint)
  elseif what == "reject" then
    return apply.reject(hunks)
  end
  local left, problem = M.accept_open(buf, hunks)
  if left and #hunks == 1 then
    left = "hunk is stale: its lines changed; undo (u) restores it"
  end
  if left or problem then
    notify.warn(left or problem)
  end
end

---@param what "accept"|"reject"
local function decide_at_cursor(what)
  decide(what, api.nvim_get_current_buf(), { (M.at_cursor()) })
end

--- Run an operator at the cursor, so that `.` repeats it.
---@param name string function of this module
local function operate(name)
  vim.go.operatorfunc = SELF .. name
  vim.cmd.normal({ "g@l", bang = true })
end

--- Accept or reject what is in some rows; of hunks that reach beyond them, the part inside.
---@param what "accept"|"reject"
local function decide_rows(what, first, last)
  local buf = api.nvim_get_current_buf()
  local inside = {}
  for _, hunk in ipairs(proposals.hunks(buf)) do
    local is_touched = hunk.first < last and hunk.last > first
    if hunk.first == hunk.last then
      is_touched = first < hunk.first + 1 and last >= hunk.first
    end
    local is_all = hunk.first >= first and hunk.last <= last
    if is_touched and (is_all or hunk.state ~= "open") then
      table.insert(inside, hunk)
    elseif is_touched then
      vim.list_extend(inside, apply.split(buf, hunk, first, last))
    end
  end
  decide(what, buf, inside)
end

for _, what in ipairs({ "accept", "reject" }) do
  --- For 'operatorfunc': at the cursor, or what a motion or a selection covers.
  M["op_" .. what] = notify.guarded(function()
    decide_at_cursor(what)
  end)
  M["op_" .. what .. "_rows"] = notify.guarded(function()
    local first, last = api.nvim_buf_get_mark(0, "["), api.nvim_buf_get_mark(0, "]")
    decide_rows(what, first[1] - 1, last[1])
  end)
  --- Begin to accept or reject what a motion, a text object or the selection covers.
  ---@return string what to type, for an <expr> map
  M[what .. "_operator"] = function()
    vim.go.operatorfunc = SELF .. "op_" .. what .. "_rows"
    return "g@"
  end
  --- Accept or reject the hunk at the cursor, the selected part of one, or some rows.
  ---@param first? integer
  ---@param last? integer
  M[what] = function(first, last)
    local mode = api.nvim_get_mode().mode
    if first then
      decide_rows(what, first, last or first + 1)
    elseif mode:find("^[vV\22]") then
      vim.cmd.normal({ M[what .. "_operator"](), bang = true })
    elseif mode:sub(1, 1) == "n" then
      operate("op_" .. what)
    else
      decide_at_cursor(what)
    end
  end
  --- Accept or reject all hunks of the buffer; accepting is one undo step.
  M[what .. "_file"] = function()
    local buf = api.nvim_get_current_buf()
    decide(what, buf, proposals.hunks(buf))
  end
end

---@class lcursor.HunkCall
---@field buf? integer with a range or the scope "file"; nil or 0: the current one
---@field scope? "hunk"|"file"|"edit"|"unneeded" "hunk": the one at the cursor
---@field range? integer[] first and last line, from 1

--- Reject the hunks of all files that no test needs.
local function reject_unneeded()
  local found = {}
  for _, part in ipairs(proposals.parts()) do
    vim.list_extend(
      found,
      vim.tbl_filter(function(hunk)
        return hunk.is_unneeded and proposals.is_open(hunk)
      end, part.hunks)
    )
  end
  if #found == 0 then
    return notify.info("no open hunk is one that no test needs")
  end
  apply.reject(found)
end

--- Accept or reject hunks, for commands and for the Lua API.
---@param what "accept"|"reject"
---@param call lcursor.HunkCall
---@return integer count of those that are not open any more
function M.decide(what, call)
  local before, buf = proposals.count(), call.buf or 0
  local function decide_all()
    if call.scope == "edit" then
      require("lcursor.edit.keys").press(what .. "_all")
    elseif call.scope == "unneeded" then
      reject_unneeded()
    elseif call.scope == "file" then
      M[what .. "_file"]()
    elseif call.range then
      M[what](call.range[1] - 1, call.range[2])
    else
      M[what]()
    end
  end
  if buf == 0 or buf == api.nvim_get_current_buf() then
    decide_all()
  else
    api.nvim_buf_call(buf, decide_all)
  end
  return before - proposals.count()
end

--- Describe open hunks, for the Lua API.
---@param buf? integer nil: of all files
---@return table[]
function M.list(buf)
  local found = {}
  buf = buf == 0 and api.nvim_get_current_buf() or buf
  for _, part in ipairs(proposals.parts()) do
    for _, hunk in ipairs((not buf or part.buf == buf) and part.hunks or {}) do
      if proposals.is_open(hunk) then
        local is_waiting = hunk.state == "waiting"
        table.insert(found, {
          path = part.file.path,
          buf = part.buf,
          first = (is_waiting and hunk.base_row or hunk.first) + 1,
          last = is_waiting and hunk.base_row + #hunk.old or hunk.last,
          old = vim.list_slice(hunk.old),
          new = vim.list_slice(hunk.new),
          is_conflict = hunk.state == "conflict",
          edit = part.proposal.key,
          title = part.proposal.title,
        })
      end
    end
  end
  return found
end

local times = 1 -- that accept_next runs, also with `.`

--- For 'operatorfunc': accept the hunk at the cursor, and go to the next one. Stops in another file
--- that runs code by itself.
M.op_accept_next = notify.guarded(function()
  local buf = api.nvim_get_current_buf()
  for _ = 1, times do
    local hunk = M.at_cursor()
    if hunk then
      if hunk.part.file.is_guarded and hunk.part.buf ~= buf then
        return notify.info("stopped, since this file runs code by itself: " .. hunk.part.file.name)
      end
      decide_at_cursor("accept")
      if hunk.state ~= "accepted" then
        return -- the reason was shown
      end
    end
    if proposals.count() == 0 then
      return -- how the edit ended was shown
    end
    M.next(1)
  end
end)

--- Accept the hunk at the cursor and go to the next one, [count] times.
function M.accept_next()
  times = vim.v.count1
  operate("op_accept_next")
end

--- Select the old lines of the hunk at the cursor; for the text object.
function M.select()
  local hunk = M.at_cursor()
  if not hunk or hunk.first == hunk.last then
    return notify.fail(hunk and "the hunk has no old lines" or "no open hunk here")
  end
  if api.nvim_get_mode().mode:find("^[vV\22]") then
    vim.cmd.normal({ "\27", bang = true })
  end
  api.nvim_win_set_cursor(0, { hunk.first + 1, 0 })
  vim.cmd.normal({ "V", bang = true })
  api.nvim_win_set_cursor(0, { hunk.last, 0 })
end

---@param buf integer of the window
local function save(buf, hunk)
  local target = hunk.part.buf
  if hunk.state ~= "open" or not target then
    return notify.warn("hunk already resolved; edit not applied")
  end
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  if #lines == 1 and lines[1] == "" then
    lines = {}
  end
  vim.bo[buf].modified = false
  if vim.deep_equal(lines, hunk.old) then
    return notify.info("identical to the original; reject the hunk instead")
  end
  hunk.new = lines
  proposals.changed(target)
end

local edited = 0 -- hunks, for the names of their buffers

--- Open the new lines of the hunk at the cursor in a window below; `:write` changes the hunk.
function M.edit()
  local hunk = M.at_cursor()
  local target = hunk and hunk.state == "open" and hunk.part.buf
  if not hunk or not target then
    return notify.info("no open hunk here")
  end
  edited = edited + 1
  local buf = window.create(("change/%d"):format(edited))
  api.nvim_buf_set_lines(buf, 0, -1, false, hunk.new)
  local bo = vim.bo[buf]
  bo.buftype, bo.bufhidden = "acwrite", "wipe"
  for _, option in ipairs({ "filetype", "expandtab", "shiftwidth", "tabstop", "softtabstop" }) do
    bo[option] = vim.bo[target][option]
  end
  bo.modified = false
  api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = notify.guarded(function()
      save(buf, hunk)
    end),
  })
  local height = math.min(math.max(#hunk.new, 3), MAX_EDIT_ROWS)
  local win = api.nvim_open_win(buf, true, { split = "below", height = height })
  vim.wo[win][0].foldenable = false -- that of the window before would close them
end

return M
