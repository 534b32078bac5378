-- The proposals of this session and their hunks: receives them, puts them into buffers as these are
-- loaded, tracks their state, and notifies listeners. apply.lua writes into buffers.

local buffers = require("lcursor.editor.buffers")
local notify = require("lcursor.ui.notify")
local positions = require("lcursor.edit.positions")
local render = require("lcursor.edit.render")
local text = require("lcursor.text")
local track = require("lcursor.edit.track")
local undo = require("lcursor.editor.undo")

local M = {}

local api = vim.api
local MAX_DECIDED = 20 -- proposals without open hunks that are kept, for `u`

---@type lcursor.EditProposal[] the oldest first
local proposals = {}
---@type table<string, { buf: integer, path: string }[]> files of proposals that are forgotten
local forgotten = {}
---@type fun(decided: lcursor.EditDecided)[]
local decided_listeners = {}
---@type fun(buf?: integer)[]
local changed_listeners = {}
local is_started = false

--- Call a function when hunks were accepted, rejected or undone.
---@param fn fun(decided: lcursor.EditDecided)
function M.on_decided(fn)
  table.insert(decided_listeners, fn)
end

--- Call a function when the open hunks of a buffer changed; nil: those of files not loaded.
---@param fn fun(buf?: integer)
function M.on_changed(fn)
  table.insert(changed_listeners, fn)
end

---@return lcursor.EditProposal[] all that are kept, the oldest first
function M.all()
  return vim.list_slice(proposals)
end

---@param key string
---@return lcursor.EditProposal?
function M.get(key)
  return vim.iter(proposals):find(function(proposal)
    return proposal.key == key
  end)
end

---@param hunk lcursor.Hunk
---@return boolean
function M.is_open(hunk)
  return hunk.state == "open" or hunk.state == "conflict" or hunk.state == "waiting"
end

---@param part lcursor.EditPart
---@return integer
function M.open_in(part)
  return #vim.tbl_filter(M.is_open, part.hunks)
end

--- Whether a file is created, deleted or renamed: more than lines of it change.
---@param part lcursor.EditPart
---@return boolean
function M.is_whole(part)
  local kind = part.file.kind
  return kind == "delete" or kind == "rename" or (kind == "create" and not part.buf)
end

--- Whether the user still has to decide about a part.
---@param part lcursor.EditPart
---@return boolean
function M.is_pending(part)
  return part.state ~= "done" and (M.open_in(part) > 0 or M.is_whole(part))
end

--- Whether nothing of a proposal is open.
---@param proposal lcursor.EditProposal
---@return boolean
function M.is_decided(proposal)
  return not vim.iter(proposal.parts):any(M.is_pending)
end

---@param proposal lcursor.EditProposal
---@return lcursor.EditProposal[] the proposals for the same edit, itself among them
function M.alternatives(proposal)
  return vim.tbl_filter(function(other)
    return other.group == proposal.group
  end, proposals)
end

---@param buf? integer nil: of all files
---@param with_hidden? boolean also of the proposals that are not shown
---@return lcursor.EditPart[]
local function parts_of(buf, with_hidden)
  local found = {}
  for _, proposal in ipairs(proposals) do
    for _, part in ipairs((with_hidden or not proposal.is_hidden) and proposal.parts or {}) do
      if not buf or part.buf == buf then
        found[#found + 1] = part
      end
    end
  end
  return found
end

---@return lcursor.EditPart[] about which the user still has to decide
function M.parts()
  return vim.tbl_filter(M.is_pending, parts_of())
end

--- Whether a buffer is of an edit that the user still has to decide about, here or in other files.
---@param buf integer
---@return boolean
function M.is_concerned(buf)
  return vim.iter(parts_of(buf)):any(function(part)
    return not M.is_decided(part.proposal)
  end)
end

---@return integer open hunks of all files
function M.count()
  return vim.iter(parts_of()):fold(0, function(count, part)
    return count + M.open_in(part)
  end)
end

--- Return the open hunks of a buffer, in the order of their rows.
---@param buf integer
---@return lcursor.Hunk[]
function M.hunks(buf)
  buf = buf == 0 and api.nvim_get_current_buf() or buf
  local found, order = {}, {}
  for _, part in ipairs(parts_of(buf)) do
    for _, hunk in ipairs(part.hunks) do
      if hunk.state == "open" or hunk.state == "conflict" then
        table.insert(found, hunk)
        order[hunk] = #found
      end
    end
  end
  table.sort(found, function(one, other)
    if one.first ~= other.first then
      return one.first < other.first
    elseif one.last ~= other.last then
      return one.last < other.last -- an insertion comes before what follows it
    end
    return order[one] < order[other]
  end)
  return found
end

--- Draw the hunks of a buffer again and notify the listeners.
---@param buf? integer
function M.changed(buf)
  if buf and api.nvim_buf_is_loaded(buf) then
    render.update(buf, M.hunks(buf))
  end
  for _, fn in ipairs(changed_listeners) do
    fn(buf)
  end
end

---@param accepted lcursor.EditHunk[]
---@param rejected lcursor.EditChange[]
---@param open integer
local function emit(part, accepted, rejected, open, is_undone)
  for _, fn in ipairs(decided_listeners) do
    fn({
      turn = part.proposal.key,
      path = part.file.path,
      accepted = accepted,
      rejected = rejected,
      open = open,
      is_undone = is_undone,
    })
  end
end

--- Notify the listeners of decisions about hunks of a file.
---@param part lcursor.EditPart
---@param accepted lcursor.EditHunk[]
---@param rejected lcursor.EditChange[]
---@param is_undone boolean
function M.report(part, accepted, rejected, is_undone)
  emit(part, accepted, rejected, M.open_in(part), is_undone)
  local is_all = #accepted > 0 and not is_undone and M.is_decided(part.proposal)
  if is_all and not part.proposal.is_attempt then -- attempts may be combined
    -- The other proposals for the same edit are closed, but can still be shown.
    for _, other in ipairs(M.alternatives(part.proposal)) do
      for _, each in ipairs(other ~= part.proposal and other.parts or {}) do
        emit(each, {}, {}, 0, false)
      end
    end
  end
end

--- Notify the listeners of accepted hunks with the lines around them, or that these were undone.
---@param part lcursor.EditPart
---@param hunks lcursor.Hunk[]
---@param is_undone boolean
function M.report_accepted(part, hunks, is_undone)
  if #hunks == 0 then
    return
  end
  local accepted = vim.tbl_map(function(hunk)
    local first, last = hunk.first, hunk.last
    return {
      row = first,
      old = hunk.old,
      new = hunk.new,
      above = api.nvim_buf_get_lines(part.buf, math.max(first - 3, 0), first, false),
      below = api.nvim_buf_get_lines(part.buf, last, last + 3, false),
    }
  end, hunks)
  M.report(part, accepted, {}, is_undone)
end

local function detach(part)
  for _, hunk in ipairs(part.hunks) do
    if hunk.state == "open" or hunk.state == "conflict" then
      hunk.state = "waiting"
    end
  end
  part.buf, part.state = nil, part.state == "placed" and "waiting" or part.state
end

--- Remember the buffers of a proposal that is forgotten: its edit can still be undone or redone.
local function forget(proposal)
  local known = {}
  for _, part in ipairs(proposal.parts) do
    if part.buf then
      table.insert(known, { buf = part.buf, path = part.file.path })
    end
  end
  forgotten[proposal.key] = known
end

--- Let the hunks of a buffer follow it to its new name.
---@param buf integer
---@return { turn: string, path: string, to: string }[] of all proposals
function M.rename(buf)
  local to, renamed = buffers.path(buf), {}
  local function rename(turn, file)
    if file.path ~= to then
      table.insert(renamed, { turn = turn, path = file.path, to = to })
      file.path = to
    end
  end
  if not buffers.is_file(buf) then
    return {}
  end
  for _, part in ipairs(parts_of(buf, true)) do
    rename(part.proposal.key, part.file)
    part.file.name = buffers.name(buf)
  end
  for turn, files in pairs(forgotten) do
    for _, file in ipairs(files) do
      if file.buf == buf then
        rename(turn, file)
      end
    end
  end
  if #renamed > 0 then
    M.changed(buf)
  end
  return renamed
end

local watch ---@type fun(buf: integer)

--- Put into a buffer what waits for it.
---@param buf integer loaded
local function arrive(buf)
  local is_any = false
  for _, proposal in ipairs(M.all()) do
    for _, part in ipairs(proposal.parts) do
      if part.state == "waiting" and buffers.find(part.file.path) == buf then
        watch(buf)
        M.report_accepted(part, positions.locate(part, buf), true)
        is_any = true
      end
    end
  end
  if is_any then
    M.changed(buf)
  end
end

--- Report the hunks that do not fit a text that was read again.
local function report_conflicts(buf)
  local count = #vim.tbl_filter(function(hunk)
    return hunk.state == "conflict"
  end, M.hunks(buf))
  if count > 0 then
    local words = text.many(count, "hunk") .. (count == 1 and " does" or " do")
    local hint = "u may restore it, :LCursor hunk reject file closes them"
    notify.info(("%s not fit the text of %s"):format(words, buffers.name(buf)), hint)
  end
end

watch = function(buf)
  track.watch(buf, {
    moved = function(first, last, now)
      for _, part in ipairs(parts_of(buf, true)) do
        local written = part.written or {}
        for _, hunk in ipairs(part.hunks) do
          if not hunk.is_lost and not written[hunk] and hunk.state ~= "rejected" then
            track.move(hunk, first, last, now)
            track.move(hunk.area, first, last, now)
          end
        end
      end
    end,
    changed = function()
      local seq, is_changed = undo.number(buf), false
      for _, part in ipairs(parts_of(buf, true)) do
        local undone, redone, is_other = positions.refresh(buf, part, seq)
        is_changed = is_changed or is_other
        M.report_accepted(part, undone, true)
        M.report_accepted(part, redone, false)
      end
      if is_changed then
        M.changed(buf)
      end
    end,
    detached = function()
      for _, part in ipairs(parts_of(buf, true)) do
        detach(part)
      end
      render.update(buf, {})
      if api.nvim_buf_is_loaded(buf) then
        arrive(buf)
        report_conflicts(buf)
      end
      M.changed(buf)
    end,
  })
end

--- Forget the oldest proposals that are decided.
local function tidy()
  local excess = #vim.tbl_filter(M.is_decided, proposals) - MAX_DECIDED
  proposals = vim.tbl_filter(function(proposal)
    local is_recent = excess <= 0 or not M.is_decided(proposal)
    excess = excess - (is_recent and 0 or 1)
    if not is_recent then
      forget(proposal)
    end
    return is_recent
  end, proposals)
end

--- Follow windows, the cursor and the text from the first proposal on.
local function start()
  if is_started then
    return
  end
  is_started = true
  render.start()
  local on = notify.autocmds("edit.proposals")
  on({ "BufReadPost", "BufNewFile" }, function(event)
    if #proposals > 0 then
      arrive(event.buf)
    end
  end)
  on("InsertLeave", function(event)
    track.report(event.buf)
  end)
end

--- Receive a proposal; one with the same key is replaced.
---@param msg lcursor.EditProposed
---@param instead? string key of a proposal for the same edit, which is hidden for this one
---@param group? string of an agent's attempts: it is hidden if another one of these is shown
---@return lcursor.EditProposal
function M.propose(msg, instead, group)
  start()
  M.drop(msg.turn)
  forgotten[msg.turn] = nil
  local other = instead and M.get(instead)
  ---@type lcursor.EditProposal
  local proposal = {
    key = msg.turn,
    id = msg.id,
    title = msg.title,
    group = group or (other and other.group) or msg.turn,
    is_hidden = false,
    is_attempt = group ~= nil,
    parts = {},
  }
  proposal.is_hidden = vim.iter(M.alternatives(proposal)):any(function(one)
    return group ~= nil and not one.is_hidden
  end)
  for _, file in ipairs(msg.files) do
    table.insert(proposal.parts, positions.part(proposal, file))
  end
  table.insert(proposals, proposal)
  if other then
    M.show(proposal)
  end
  local is_waiting = false
  for _, part in ipairs(proposal.parts) do
    local buf = buffers.find(part.file.path)
    is_waiting = is_waiting or not buf
    if buf then
      arrive(buf)
    end
  end
  if is_waiting then
    M.changed(nil)
  end
  tidy()
  return proposal
end

--- Show one of the proposals for the same edit, and hide the others.
---@param proposal lcursor.EditProposal
function M.show(proposal)
  local bufs = {}
  for _, one in ipairs(M.alternatives(proposal)) do
    one.is_hidden = one ~= proposal
    for _, part in ipairs(one.parts) do
      if part.buf then
        bufs[part.buf] = true
      end
    end
  end
  for buf in pairs(bufs) do
    M.changed(buf)
  end
  M.changed(nil)
end

--- Forget a proposal and take its hunks off the screen, without a report that they were rejected.
---@param key string
function M.drop(key)
  local proposal = M.get(key)
  if not proposal then
    return
  end
  proposals = vim.tbl_filter(function(one)
    return one ~= proposal
  end, proposals)
  forget(proposal)
  for _, part in ipairs(proposal.parts) do
    local buf = part.buf
    detach(part)
    M.changed(buf)
  end
  M.changed(nil)
end

--- Mark files of a proposal as written to the disk: nothing of them is open any more.
---@param key string
---@param paths string[]
function M.written(key, paths)
  local proposal = M.get(key)
  for _, part in ipairs(proposal and proposal.parts or {}) do
    if vim.list_contains(paths, part.file.path) then
      for _, hunk in ipairs(vim.tbl_filter(M.is_open, part.hunks)) do
        hunk.state = "rejected"
      end
      local buf = part.buf
      detach(part)
      part.state = "done"
      M.changed(buf)
    end
  end
end

return M
