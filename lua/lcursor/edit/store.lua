-- The life of turns and their hunks: takes proposals, puts them into buffers as these are loaded,
-- hears what becomes of them, tells who asked to be told; kept.lua is their table. Writes into no
-- buffer (decide.lua does) and knows no keys.

local anchor = require("lcursor.edit.anchor")
local direct = require("lcursor.edit.direct")
local draw = require("lcursor.edit.draw")
local kept = require("lcursor.edit.kept")
local notify = require("lcursor.notify")
local placing = require("lcursor.edit.placing")
local trace = require("lcursor.edit.trace")

local M = {}

local api = vim.api
local group = api.nvim_create_augroup("lcursor.edit.store", { clear = true })
local MANY = 50 -- hunks: what is to be done about them is not done all at once
local LONG = 100 -- lines of a change, likewise
local MOST_DECIDED = 20 -- turns without open hunks that are kept, for `u`

-- What is asked of the table is asked here: who changes hunks needs one door.
M.alternatives, M.buffers, M.count, M.hunks =
  kept.alternatives, kept.buffers, kept.count, kept.hunks
M.is_decided, M.is_whole, M.open_in = kept.is_decided, kept.is_whole, kept.open_in
M.parts, M.turn, M.turns = kept.parts, kept.turn, kept.turns

---@type fun(decided: lcursor.EditDecided)[]
local deciders = {}
---@type fun(buf?: integer)[]
local listeners = {}

--- Say who is told what the user took or refused.
---@param fn fun(decided: lcursor.EditDecided)
function M.on_decided(fn)
  table.insert(deciders, fn)
end

--- Say who is told that the open hunks of a buffer are others; nil: those of files that no buffer
--- has.
---@param fn fun(buf?: integer)
function M.on_changed(fn)
  table.insert(listeners, fn)
end

--- Draw a buffer anew and tell that its hunks are others.
---@param buf? integer
function M.changed(buf)
  if buf and api.nvim_buf_is_loaded(buf) then
    draw.update(buf, M.hunks(buf))
  end
  for _, fn in ipairs(listeners) do
    fn(buf)
  end
end

--- The same, a little later where the editor has had much to do for it just now.
---@param buf integer
---@param is_much boolean
local function changed_after(buf, is_much)
  if not is_much then
    return M.changed(buf)
  end
  vim.schedule(notify.guarded(function()
    M.changed(buf)
  end))
end

---@param part lcursor.EditPart
---@return boolean
local function is_much(part)
  local count = 0
  for _, hunk in ipairs(part.hunks) do
    count = count + #hunk.old + #hunk.new
  end
  return #part.hunks > MANY or count > LONG
end

---@param decided lcursor.EditDecided
local function say(decided)
  for _, fn in ipairs(deciders) do
    fn(decided)
  end
end

--- The other proposals for an edit that was decided wait for nobody, but can still be shown.
---@param turn lcursor.EditTurn
local function close_others(turn)
  for _, one in ipairs(M.alternatives(turn)) do
    for _, part in ipairs(one ~= turn and one.parts or {}) do
      local path = part.file.path
      say({
        turn = one.key,
        path = path,
        accepted = {},
        rejected = {},
        open = 0,
        is_undone = false,
      })
    end
  end
end

--- Tell what was decided about hunks of a file.
---@param part lcursor.EditPart
---@param accepted lcursor.EditHunk[]
---@param rejected lcursor.EditChange[]
---@param is_undone? boolean
function M.decided(part, accepted, rejected, is_undone)
  ---@type lcursor.EditDecided
  local decided = {
    turn = part.turn.key,
    path = part.file.path,
    accepted = accepted,
    rejected = rejected,
    open = kept.open_in(part),
    is_undone = is_undone or false,
  }
  say(decided)
  if #accepted > 0 and not is_undone and M.is_decided(part.turn) then
    close_others(part.turn)
  end
end

--- A hunk as it is in the buffer now, for the ledger.
---@param buf integer
---@param hunk lcursor.Hunk
---@return lcursor.EditHunk
function M.told(buf, hunk)
  local first, last = hunk.first, hunk.last
  return {
    row = first,
    old = hunk.old,
    new = hunk.new,
    above = api.nvim_buf_get_lines(buf, math.max(first - 3, 0), first, false),
    below = api.nvim_buf_get_lines(buf, last, last + 3, false),
  }
end

---@param part lcursor.EditPart
---@param hunks lcursor.Hunk[]
---@param is_undone boolean
local function tell(part, hunks, is_undone)
  if #hunks > 0 then
    local told = vim.tbl_map(function(hunk)
      return M.told(part.buf, hunk)
    end, hunks)
    M.decided(part, told, {}, is_undone)
  end
end

local hear ---@type lcursor.EditHear

---@param part lcursor.EditPart
---@param buf integer
local function place_now(part, buf)
  anchor.watch(buf, hear)
  tell(part, placing.place(part, buf), true)
end

--- Put a file's hunks into its buffer, a little later where there is much to do for it.
---@param part lcursor.EditPart
---@param buf integer
---@return boolean whether they are there; else they are drawn when they are
local function place(part, buf)
  if part.base or #part.hunks == 0 then
    place_now(part, buf)
    return true
  end
  local function later()
    local is_wanted = part.state == "waiting" and kept.has(part.turn)
    if is_wanted and api.nvim_buf_is_loaded(buf) then
      place_now(part, buf)
      changed_after(buf, is_much(part))
    end
  end
  if trace.prepare(buf, part.file, later) then
    return false
  elseif is_much(part) then
    vim.schedule(notify.guarded(later))
    return false
  end
  place_now(part, buf)
  return true
end

--- Put what waits for this buffer into it.
---@param buf integer loaded
local function arrive(buf)
  local is_any = false
  for _, turn in ipairs(kept.turns()) do
    for _, part in ipairs(turn.parts) do
      if part.state == "waiting" and direct.buffer(part.file.path) == buf then
        is_any = place(part, buf) or is_any
      end
    end
  end
  if is_any then
    M.changed(buf)
  end
end

---@param part lcursor.EditPart
local function leave(part)
  if part.buf and api.nvim_buf_is_loaded(part.buf) then
    draw.clear(part.buf, part.hunks)
  end
  for _, hunk in ipairs(part.hunks) do
    if part.buf then
      anchor.forget(part.buf, hunk)
    end
    hunk.marks = {}
    if hunk.state == "open" or hunk.state == "conflict" then
      hunk.state = "waiting"
    end
  end
  part.buf, part.state = nil, part.state == "placed" and "waiting" or part.state
end

hear = function(buf, what)
  local is_other, count = what ~= "changed", 0
  local number = what == "changed" and direct.number(buf) or 0
  for _, turn in ipairs(kept.turns()) do
    for _, part in ipairs(turn.parts) do
      if part.buf == buf then
        if what == "changed" then
          local undone, redone, is_any = placing.look(buf, part, number)
          is_other = is_other or is_any
          tell(part, undone, true)
          tell(part, redone, false)
          count = count + #undone + #redone
        else
          leave(part)
        end
      end
    end
  end
  if what ~= "changed" and api.nvim_buf_is_loaded(buf) then
    arrive(buf)
  end
  if is_other then
    changed_after(buf, count > MANY)
  end
end

api.nvim_create_autocmd({ "BufReadPost", "BufNewFile" }, {
  group = group,
  callback = notify.guarded(function(args)
    if not kept.is_empty() then
      arrive(args.buf)
    end
  end),
})

api.nvim_create_autocmd({ "VimResized", "WinResized", "BufWinEnter", "WinScrolled" }, {
  group = group,
  callback = notify.guarded(draw.seen),
})

api.nvim_create_autocmd("CursorMoved", {
  group = group,
  callback = notify.guarded(function(args)
    draw.point(args.buf)
  end),
})

--- Forget the oldest turns that wait for nothing.
local function tidy()
  local spare = -MOST_DECIDED
  for _, turn in ipairs(kept.turns()) do
    spare = spare + (M.is_decided(turn) and 1 or 0)
  end
  kept.filter(function(turn)
    if spare > 0 and M.is_decided(turn) then
      spare = spare - 1
      vim.tbl_map(leave, turn.parts)
      return false
    end
    return true
  end)
end

--- Take a proposal. A turn that is there already is replaced.
---@param msg lcursor.EditProposed
---@param instead? string key of a turn for the same edit, which is hidden for this one
---@return lcursor.EditTurn
function M.propose(msg, instead)
  M.drop(msg.turn)
  local other = instead and M.turn(instead)
  ---@type lcursor.EditTurn
  local turn = {
    key = msg.turn,
    id = msg.id,
    title = msg.title,
    note = msg.note,
    chat = msg.chat,
    alternative = msg.alternative,
    group = other and other.group or msg.turn,
    is_hidden = false,
    parts = {},
  }
  for _, file in ipairs(msg.files) do
    table.insert(turn.parts, placing.part(turn, file))
  end
  kept.add(turn)
  if other then
    M.show(turn)
  end
  for _, part in ipairs(turn.parts) do
    local buf = direct.buffer(part.file.path)
    if not buf then
      M.changed(nil)
    elseif place(part, buf) then
      changed_after(buf, is_much(part))
    end
  end
  tidy()
  return turn
end

--- Show this one of some alternatives.
---@param turn lcursor.EditTurn
function M.show(turn)
  local buffers = {}
  for _, one in ipairs(M.alternatives(turn)) do
    one.is_hidden = one ~= turn
    for _, part in ipairs(one.parts) do
      if part.buf and one.is_hidden then
        draw.clear(part.buf, part.hunks)
      end
      if part.buf then
        buffers[part.buf] = true
      end
    end
  end
  for buf in pairs(buffers) do
    M.changed(buf)
  end
end

---@param turn lcursor.EditTurn
local function remove(turn)
  local buffers = {}
  for _, part in ipairs(turn.parts) do
    table.insert(buffers, part.buf)
    leave(part)
  end
  kept.filter(function(one)
    return one ~= turn
  end)
  for _, buf in ipairs(buffers) do
    M.changed(buf)
  end
  M.changed(nil)
end

--- Forget a turn and take its hunks off the screen; nobody is told that they were refused.
---@param key string
function M.drop(key)
  local turn = M.turn(key)
  if turn then
    remove(turn)
  end
end

--- Files of a turn that were written to the disk, or refused as a whole: nothing of them waits.
---@param key string
---@param paths string[]
function M.written(key, paths)
  local turn = M.turn(key)
  for _, part in ipairs(turn and turn.parts or {}) do
    if vim.list_contains(paths, part.file.path) then
      for _, hunk in ipairs(part.hunks) do
        if kept.is_open(hunk) then
          hunk.state = "rejected"
        end
      end
      local buf = part.buf
      leave(part)
      part.state = "done"
      M.changed(buf)
    end
  end
end

return M
