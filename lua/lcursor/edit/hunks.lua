-- What a user does with open hunks: goes to them, takes and refuses them, whole or in part, by key,
-- operator and text object, with a count and with `.`. Changes nothing itself: decide.lua does.

local anchor = require("lcursor.edit.anchor")
local decide = require("lcursor.edit.decide")
local notify = require("lcursor.notify")
local store = require("lcursor.edit.store")
local words = require("lcursor.edit.words")

local M = {}

local api = vim.api
local SELF = "v:lua.require'lcursor.edit.hunks'."

---@return integer
local function cursor_row()
  return api.nvim_win_get_cursor(0)[1] - 1
end

--- The hunk that the cursor is at.
---@return lcursor.Hunk?
---@return integer? index
---@return integer? count of the buffer
function M.at_cursor()
  local hunks = store.hunks(api.nvim_get_current_buf())
  local hunk, index = anchor.at(hunks, cursor_row())
  return hunk, index, #hunks
end

---@param hunk lcursor.Hunk
---@return integer row that the cursor goes to; new lines are below it
local function row_of(hunk)
  local row = hunk.last == hunk.first and hunk.first - 1 or hunk.first
  return math.min(math.max(row, 0), api.nvim_buf_line_count(0) - 1)
end

--- Scroll until the new lines of a hunk are visible too, which stand below the cursor's line. One
--- more line is left for its keys.
---@param hunk lcursor.Hunk
local function uncover(hunk)
  local below = math.max(hunk.last - 1, 0) - cursor_row() + #hunk.new + 1
  local hidden = vim.fn.winline() + below - api.nvim_win_get_height(0)
  local by = math.min(hidden, vim.fn.winline() - 1 - vim.o.scrolloff)
  if by > 0 then
    vim.cmd(("normal! %d\5"):format(by)) -- CTRL-E
  end
end

--- The same for the hunk that the cursor is at.
function M.uncover()
  local hunk = M.at_cursor()
  if hunk then
    uncover(hunk)
  end
end

---@param hunk lcursor.Hunk
local function go(hunk)
  vim.cmd("normal! m'")
  local row = row_of(hunk)
  local line = api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ""
  api.nvim_win_set_cursor(0, { row + 1, #line:match("^%s*") })
  vim.cmd("normal! zv")
  uncover(hunk)
end

--- The file with open hunks that comes after, or before, the one that is looked at.
---@param by integer
---@return lcursor.EditPart?
local function neighbour(by)
  local buf, paths, here, parts = api.nvim_get_current_buf(), {}, nil, {}
  for _, part in ipairs(store.parts()) do
    if store.open_in(part) > 0 and not paths[part.file.path] then
      paths[part.file.path] = true
      table.insert(parts, part)
      here = part.buf == buf and #parts or here
    end
  end
  if #parts == 0 or (here and #parts == 1) then
    return nil
  end
  local start = here or (by > 0 and 0 or 1)
  return parts[(start - 1 + (by > 0 and 1 or -1)) % #parts + 1]
end

---@param buf integer
---@return integer? window of this tab page that shows it
local function window_of(buf)
  local win = vim.fn.bufwinid(buf)
  return win > 0 and win or nil
end

---@param part lcursor.EditPart
---@return boolean
local function open(part)
  local win = part.buf and window_of(part.buf)
  if win then
    api.nvim_set_current_win(win)
    return true
  end
  local ok, err = pcall(function()
    if part.buf then
      vim.cmd.buffer(part.buf)
    else
      local name = vim.fn.fnamemodify(part.file.path, ":.")
      vim.cmd.edit({ name, magic = { file = false, bar = false } })
    end
  end)
  if not ok then
    notify.warn(("cannot go to %s: %s"):format(part.file.name, tostring(err):gsub("^.-:%s*", "")))
  end
  return ok
end

--- Go to the first hunk of a turn that is open, where a window of this tab page shows its file.
---@param turn lcursor.EditTurn
---@return boolean whether there is one
function M.show(turn)
  for _, part in ipairs(turn.parts) do
    local win = part.buf and window_of(part.buf)
    for _, hunk in ipairs(win and part.hunks or {}) do
      if hunk.state == "open" then
        api.nvim_set_current_win(win)
        go(hunk)
        return true
      end
    end
  end
  return false
end

---@param row integer
---@param by integer
---@return lcursor.Hunk? the next in this buffer, or before it
local function beyond(row, by)
  local hunks = store.hunks(api.nvim_get_current_buf())
  local found
  for i = 1, #hunks do
    local hunk = hunks[by > 0 and i or #hunks - i + 1]
    local at = row_of(hunk)
    if (by > 0 and at > row) or (by < 0 and at < row) then
      found = hunk
      break
    end
  end
  return found
end

--- Go to the next open hunk, in this file, then in the others, then from the top again.
---@param by integer how many; below 0 backwards
function M.next(by)
  local step = by < 0 and -1 or 1
  for _ = 1, math.abs(by) do
    local hunk = beyond(cursor_row(), step)
    if not hunk then
      local part = neighbour(step)
      if part and not open(part) then
        return
      end
      hunk = beyond(step > 0 and -1 or api.nvim_buf_line_count(0), step)
    end
    if not hunk then
      return notify.info("there are no open changes")
    end
    go(hunk)
  end
end

---@param first integer
---@param last integer
---@return fun(hunk: lcursor.Hunk): boolean whether any of it is within these rows
local function within(first, last)
  return function(hunk)
    if hunk.first == hunk.last then
      return first < hunk.first + 1 and last >= hunk.first
    end
    return hunk.first < last and hunk.last > first
  end
end

---@param problem string?
local function complain(problem)
  if problem then
    notify.warn(problem)
  end
end

---@param what "accept"|"reject"
---@param buf integer
---@param hunks lcursor.Hunk[]
---@return integer
local function act(what, buf, hunks)
  if #hunks == 0 then
    notify.info("there is no open change here")
    return 0
  elseif what == "reject" then
    decide.reject(hunks)
    return #hunks
  end
  local sure = vim.tbl_filter(function(hunk)
    return hunk.state == "open"
  end, hunks)
  local count, problem = 0, nil
  if #sure > 0 then
    count, problem = decide.accept(buf, sure)
  end
  if #sure < #hunks then
    problem = #hunks == 1 and "the lines that this was about are others now; u brings them back"
      or words.many(#hunks - #sure, "change is", "changes are") .. " in conflict, left out"
  end
  complain(problem)
  return count
end

---@param what "accept"|"reject"
local function at_cursor(what)
  act(what, api.nvim_get_current_buf(), { (M.at_cursor()) })
end

--- Hunks within some rows; of those that reach out of them, the part inside.
---@param what "accept"|"reject"
---@param first integer
---@param last integer
local function rows(what, first, last)
  local buf = api.nvim_get_current_buf()
  local inside = {}
  for _, hunk in ipairs(vim.tbl_filter(within(first, last), store.hunks(buf))) do
    local is_all = hunk.first >= first and hunk.last <= last
    if is_all or hunk.state ~= "open" then
      table.insert(inside, hunk)
    else
      vim.list_extend(inside, decide.split(buf, hunk, first, last))
    end
  end
  act(what, buf, inside)
end

for _, what in ipairs({ "accept", "reject" }) do
  --- For 'operatorfunc': at the cursor, or of what a motion or a selection covers.
  M["op_" .. what] = notify.guarded(function()
    at_cursor(what)
  end)
  M["op_" .. what .. "_rows"] = notify.guarded(function()
    local first, last = api.nvim_buf_get_mark(0, "["), api.nvim_buf_get_mark(0, "]")
    rows(what, first[1] - 1, last[1])
  end)
end

--- Run an operator as Neovim would, so that `.` repeats it.
---@param what "accept"|"reject"
---@param first? integer
---@param last? integer
local function run(what, first, last)
  if first then
    return rows(what, first, last or first + 1)
  end
  local mode = api.nvim_get_mode().mode
  local is_visual = mode:find("^[vV\22]") ~= nil
  if not is_visual and mode:sub(1, 1) ~= "n" then
    return at_cursor(what)
  end
  vim.go.operatorfunc = SELF .. "op_" .. what .. (is_visual and "_rows" or "")
  vim.cmd.normal({ is_visual and "g@" or "g@l", bang = true })
end

--- Take the hunk at the cursor, or what is selected of one, or what is in some rows.
---@param first? integer
---@param last? integer
function M.accept(first, last)
  run("accept", first, last)
end

--- Refuse it.
---@param first? integer
---@param last? integer
function M.reject(first, last)
  run("reject", first, last)
end

--- Keys of an operator that waits for a motion; for maps with `expr`.
---@param what "accept"|"reject"
---@return string
function M.operator(what)
  vim.go.operatorfunc = SELF .. "op_" .. what .. "_rows"
  return "g@"
end

--- Take all hunks of the buffer, as one undo step.
function M.accept_file()
  local buf = api.nvim_get_current_buf()
  act("accept", buf, store.hunks(buf))
end

--- Refuse all of them.
function M.reject_file()
  local buf = api.nvim_get_current_buf()
  act("reject", buf, store.hunks(buf))
end

---@class (exact) lcursor.EditWhole what is left of a turn for the disk
---@field paths string[] files to be written, in which no buffer has open hunks
---@field outside string[] those of them that are outside of the project
---@field problems string[]

---@param part lcursor.EditPart
---@return string? problem with what is to be done to all of the file
local function hindered(part)
  if store.is_whole(part) and part.buf and vim.bo[part.buf].modified then
    return ("%s has changes that are not saved; :write it first"):format(part.file.name)
  end
end

--- Take all of a turn: in buffers at once, an undo step each; says what is left for the disk.
---@param key string
---@return lcursor.EditWhole
function M.accept_turn(key)
  local turn = store.turn(key)
  ---@type lcursor.EditWhole
  local whole = { paths = {}, outside = {}, problems = {} }
  for _, part in ipairs(turn and turn.parts or {}) do
    local problem = hindered(part)
    if part.state == "done" then
      problem = nil
    elseif not problem and (store.is_whole(part) or not part.buf) then
      if store.is_whole(part) or store.open_in(part) > 0 then
        table.insert(whole.paths, part.file.path)
        if part.file.is_outside then
          table.insert(whole.outside, part.file.path)
        end
      end
    elseif not problem then
      local open_hunks, conflicts = {}, 0
      for _, hunk in ipairs(part.hunks) do
        if hunk.state == "open" then
          table.insert(open_hunks, hunk)
        end
        conflicts = conflicts + (hunk.state == "conflict" and 1 or 0)
      end
      if #open_hunks > 0 then
        local _, failed = decide.accept(part.buf, open_hunks)
        problem = failed
      end
      if conflicts > 0 then
        local what = words.many(conflicts, "change is", "changes are")
        problem = ("%s: %s in conflict, left out"):format(part.file.name, what)
      end
    end
    if problem then
      table.insert(whole.problems, problem)
    end
  end
  return whole
end

--- Refuse all of a turn that is still open.
---@param key string
function M.reject_turn(key)
  local turn = store.turn(key)
  local left = {}
  for _, part in ipairs(turn and turn.parts or {}) do
    local count = #left
    for _, hunk in ipairs(part.hunks) do
      if hunk.state ~= "accepted" and hunk.state ~= "rejected" then
        table.insert(left, hunk)
      end
    end
    if store.is_whole(part) and part.state ~= "done" then
      part.state = "done"
      if #left == count then
        store.decided(part, {}, {})
      end
    end
  end
  decide.reject(left)
end

--- Select the old lines of the hunk at the cursor; for the text object.
function M.select()
  local hunk = M.at_cursor()
  if not hunk or hunk.first == hunk.last then
    return
  end
  if api.nvim_get_mode().mode:find("^[vV\22]") then
    vim.cmd.normal({ "\27", bang = true })
  end
  api.nvim_win_set_cursor(0, { hunk.first + 1, 0 })
  vim.cmd.normal({ "V", bang = true })
  api.nvim_win_set_cursor(0, { hunk.last, 0 })
end

--- Change the new lines of the hunk at the cursor, in a window below, before they are taken.
function M.edit()
  local hunk = M.at_cursor()
  if not hunk then
    return notify.info("there is no open change here")
  end
  require("lcursor.edit.alter").open(hunk)
end

--- Show another one of the proposals for the same edit.
---@param by integer
function M.alternative(by)
  local hunk = M.at_cursor()
  local buf = api.nvim_get_current_buf()
  hunk = hunk or store.hunks(buf)[1]
  local all = hunk and store.alternatives(hunk.part.turn) or {}
  if not hunk or #all < 2 then
    return notify.info("there is no other proposal for this; :LCEdit asks for one")
  end
  for i, turn in ipairs(all) do
    if turn == hunk.part.turn then
      local index = (i - 1 + by) % #all + 1
      store.show(all[index])
      return notify.info(("proposal %d of %d"):format(index, #all))
    end
  end
end

return M
