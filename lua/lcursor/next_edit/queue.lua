-- The proposals of each buffer: where they are, their order, and which groups the user rejected.
-- Extmarks move them; one whose lines changed is not shown. Those of unopened files have a path.

local by_buffer = require("lcursor.editor.by_buffer")
local diff = require("lcursor.text.diff")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local rpc = require("lcursor.host.rpc")
local view = require("lcursor.next_edit.view")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.next_edit.queue")
local MUTE_MS = 30 * 1000

---@class (exact) lcursor.NextProposal as on the wire, and its place
---@field kind "rename"|"repetition"|"model"|"diagnostics" the last: by a server
---@field path string
---@field row integer in the text of the request
---@field old string[]
---@field new string[]
---@field cause string
---@field group string
---@field mark? integer extmark at the first line, or at the line above an insertion
---@field above? string that line

---@class (exact) lcursor.NextQueue of a buffer
---@field proposals lcursor.NextProposal[] in their order
---@field done table<string, integer> by group: how many were applied
---@field silence? "hidden"|"muted" why there are others that are not shown

---@alias lcursor.NextTarget integer|string a buffer, or the path of a file that is not open

---@type table<lcursor.NextTarget, lcursor.NextQueue>
local states = {}
---@type table<integer, string> by buffer: why nothing follows, a code of why.lua or a reason of the
---host
local reasons = by_buffer.new()
---@type table<integer, true> buffers of the last answer, which lead to each other
local linked = {}
---@type table<string, { at_ms: integer, words: string[], is_undone?: boolean }> by group that was
---rejected, or of which the user undid an edit
local muted = {}
---@type table<string, number> by kind and filetype: until when it is hidden, as the host says
local hidden = {}

---@param target lcursor.NextTarget
local function is_open(target)
  return type(target) == "number" and api.nvim_buf_is_loaded(target)
end

--- Return the path of a target.
---@param target lcursor.NextTarget
function M.path(target)
  return type(target) == "number" and api.nvim_buf_get_name(target) or target --[[@as string]]
end

--- Return where a proposal is now; nil if its lines changed.
---@param buf lcursor.NextTarget
---@param proposal lcursor.NextProposal
---@return integer? row
function M.row(buf, proposal)
  if not is_open(buf) then
    return type(buf) == "string" and proposal.row or nil
  elseif not proposal.mark then
    return nil
  end
  local row = api.nvim_buf_get_extmark_by_id(buf, namespace, proposal.mark, {})[1]
  if not row then
    return nil
  elseif proposal.above then
    local line = api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
    return line == proposal.above and row + 1 or nil
  end
  local lines = api.nvim_buf_get_lines(buf, row, row + #proposal.old, false)
  return diff.is_same(lines, proposal.old) and row or nil
end

--- Return the proposal that comes next.
---@param buf lcursor.NextTarget
---@return lcursor.NextProposal?
---@return integer? row
function M.first(buf)
  for _, proposal in ipairs(states[buf] and states[buf].proposals or {}) do
    local row = M.row(buf, proposal)
    if row then
      return proposal, row
    end
  end
end

--- Have the buffers of an answer lead to each other, and for now to those of the last one.
---@param buf integer the current one at the request
---@param bufs integer[]
---@param is_all boolean whether the answer is about all open files
function M.link(buf, bufs, is_all)
  linked = not is_all and linked[buf] and linked or {}
  for _, other in ipairs(bufs) do
    linked[other] = true
  end
end

--- Return a proposal of another file, of the first one by name; only from a buffer and to a file of
--- the last answer.
---@return lcursor.NextTarget? other
---@return lcursor.NextProposal?
---@return integer? row
function M.elsewhere(buf)
  local others = vim.tbl_filter(function(other)
    local is_linked = type(other) == "string" or linked[other]
    return linked[buf] and is_linked and other ~= buf and M.first(other) ~= nil
  end, vim.tbl_keys(states))
  table.sort(others, function(one, other)
    return M.path(one) < M.path(other)
  end)
  if others[1] then
    return others[1], M.first(others[1])
  end
end

--- Return the proposals with the same cause, in their order.
---@param buf lcursor.NextTarget
---@param proposal lcursor.NextProposal
---@return lcursor.NextProposal[]
function M.group(buf, proposal)
  return vim.tbl_filter(function(other)
    return other.group == proposal.group and M.row(buf, other) ~= nil
  end, states[buf] and states[buf].proposals or {})
end

--- Return which of several a proposal is; "" for a single one.
---@param buf lcursor.NextTarget
---@param proposal lcursor.NextProposal
function M.count(buf, proposal)
  local left, done = #M.group(buf, proposal), states[buf].done[proposal.group] or 0
  return left + done > 1 and ("%d of %d"):format(done + 1, done + left) or ""
end

local function is_same(one, other)
  return diff.is_same(one.old, other.old) and diff.is_same(one.new, other.new)
end

--- Forget the proposals of a buffer.
---@param buf lcursor.NextTarget
function M.clear(buf)
  if states[buf] and is_open(buf) then
    api.nvim_buf_clear_namespace(buf --[[@as integer]], namespace, 0, -1)
  end
  states[buf] = nil
end

--- Forget the proposals of a buffer that is unloaded or no longer read; it leads to no others.
function M.forget(buf)
  M.clear(buf)
  linked[buf] = nil
end

--- Forget all proposals after an undo, and mute the groups of which some were applied, unless the
--- edit that caused them was undone as well: whoever makes it again wants them again.
---@param is_taken_back? boolean whether that was undone
function M.clear_all(is_taken_back)
  for buf, state in pairs(states) do
    for group in pairs(state.done) do
      muted[group] = { at_ms = vim.uv.now(), words = {}, is_undone = true }
    end
    M.clear(buf)
  end
  muted = not is_taken_back and muted
    or vim.iter(muted):fold({}, function(found, group, it)
      found[group] = not it.is_undone and it or nil
      return found
    end)
end

---@return string of the current filetype
local function kind_of(proposal)
  return proposal.kind .. " " .. vim.bo.filetype
end

--- Whether a kind is hidden, because the user rejected it repeatedly.
local function is_unwanted(proposal)
  return (hidden[kind_of(proposal)] or 0) > os.time()
end

--- Remember why nothing follows from the last change of a buffer.
---@param reason? string a code of why.lua, or a reason; nil: something follows
function M.note(buf, reason)
  reasons[buf] = reason
end

--- Return why no proposal for a buffer is shown, as far as that is known.
---@return string? reason a code of why.lua, or a reason of the host
function M.silence(buf)
  return states[buf] and states[buf].silence or reasons[buf]
end

---@return lcursor.NextProposal[] those of the host, or the fixes of diagnostics, with their rows
local function of_source(buf, is_fix)
  return vim.tbl_filter(function(proposal)
    proposal.row = M.row(buf, proposal) or -1
    return (proposal.kind == "diagnostics") == is_fix and proposal.row >= 0
  end, states[buf] and states[buf].proposals or {})
end

--- Return the fixes of diagnostics, and set their rows to where they are now.
---@return lcursor.NextFix[]
function M.fixes(buf)
  return of_source(buf, true)
end

--- Return the proposals of the host, and then the fixes of diagnostics in other rows.
---@return lcursor.NextProposal[]
local function joined(derived, fixes)
  local found, taken = {}, {}
  for _, proposal in ipairs(vim.list_extend(vim.list_slice(derived), fixes)) do
    local is_free = true
    for row = proposal.row, proposal.row + math.max(#proposal.old, 1) - 1 do
      is_free = is_free and not taken[row]
      taken[row] = true
    end
    if is_free or proposal.kind ~= "diagnostics" then
      table.insert(found, proposal)
    end
  end
  return found
end

--- Return the proposals of the host with a new cause.
---@param before? lcursor.NextQueue
---@return lcursor.NextProposal? the first one
local function newest(before, proposals)
  local known = { diagnostics = true, model = true } ---@type table<string, true>
  for _, proposal in ipairs(before and before.proposals or {}) do
    known[proposal.group] = true
  end
  return vim.iter(proposals):find(function(proposal)
    local is_known = known[proposal.kind] or known[proposal.group]
    return not is_known and not (before and before.done[proposal.group])
  end)
end

--- Sort proposals: one first, then those of a group, from a row downwards, and then from the top;
--- the others keep their order.
---@param proposals lcursor.NextProposal[]
---@param rows table<lcursor.NextProposal, integer>
---@param first? lcursor.NextProposal
---@param group? string
---@param from integer row
local function sort(proposals, rows, first, group, from)
  local ranks = {} ---@type table<lcursor.NextProposal, integer>
  for i, proposal in ipairs(proposals) do
    local is_below = rows[proposal] >= from
    ranks[proposal] = proposal == first and -3
      or proposal.group ~= group and i
      or is_below and -2
      or -1
  end
  table.sort(proposals, function(one, other)
    if ranks[one] ~= ranks[other] then
      return ranks[one] < ranks[other]
    end
    return rows[one] < rows[other]
  end)
end

--- Set the proposals of the host for a file, or the fixes of diagnostics; the others stay. One with
--- a new cause comes first, else the visible one if it is still among them; those with its cause
--- follow, from there downwards, and then from the top.
---@param buf lcursor.NextTarget
---@param proposals lcursor.NextProposal[] as on the wire, best first
---@param from integer row of the last edit
---@param is_fix? boolean
function M.set(buf, proposals, from, is_fix)
  local before, shown, shown_row = states[buf], M.first(buf)
  local others = of_source(buf, not is_fix)
  proposals = joined(is_fix and others or proposals, is_fix and proposals or others)
  local found, done, silence = {}, {}, is_fix and before and before.silence or nil
  for _, proposal in ipairs(proposals) do
    if is_unwanted(proposal) then
      silence = "hidden"
    elseif muted[proposal.group] then
      silence = silence or "muted"
    else
      table.insert(found, proposal)
      done[proposal.group] = before and before.done[proposal.group]
    end
  end
  local new = newest(before, found)
  for i, proposal in ipairs(shown and found or {}) do
    if proposal.row == shown_row and is_same(proposal, shown) then
      shown.group, shown.cause = proposal.group, proposal.cause
      found[i], new = shown, new == proposal and shown or new
    end
  end
  local same = not new and vim.list_contains(found, shown) and shown or nil
  local rows = {} ---@type table<lcursor.NextProposal, integer>
  for _, proposal in ipairs(found) do
    rows[proposal] = proposal == shown and shown_row or proposal.row
  end
  sort(found, rows, same, (new or same or found[1] or {}).group, same and shown_row or from)
  M.clear(buf)
  states[buf] = { proposals = found, done = done, silence = silence }
  for _, proposal in ipairs(is_open(buf) and found or {}) do
    local row = rows[proposal]
    if #proposal.old == 0 and row > 0 then
      row = row - 1
      proposal.above = api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
    end
    proposal.mark = api.nvim_buf_set_extmark(buf, namespace, row, 0, { strict = false })
  end
end

--- Set the proposals of files that are not open; those of others are forgotten.
---@param proposals lcursor.NextProposal[] as on the wire
function M.set_unopened(proposals)
  for target in pairs(states) do
    if not is_open(target) then
      M.clear(target)
    end
  end
  local by_path = {} ---@type table<string, lcursor.NextProposal[]>
  for _, proposal in ipairs(proposals) do
    by_path[proposal.path] = vim.list_extend(by_path[proposal.path] or {}, { proposal })
  end
  for _, buf in ipairs(api.nvim_list_bufs()) do
    by_path[is_open(buf) and M.path(buf) or ""] = nil
  end
  for path, some in pairs(by_path) do
    M.set(path, some, 0)
  end
end

--- Place the proposals of a file that was not open when they came.
---@param buf integer loaded
function M.opened(buf, path)
  local state = states[path]
  if state then
    states[path], linked[buf] = nil, true
    M.set(buf, state.proposals, 0)
  end
end

--- Return the changes of the proposals with a cause, as `edit.propose` takes them.
---@return lcursor.EditChanges[] by file
function M.changes(group)
  local files = {}
  for buf, state in pairs(states) do
    local changes = {}
    for _, proposal in ipairs(state.proposals) do
      local row = proposal.group == group and M.row(buf, proposal)
      if row then
        local last = row + #proposal.old
        local change = { first_row = row, last_row = last, old = proposal.old, new = proposal.new }
        table.insert(changes, change)
      end
    end
    if #changes > 0 then
      table.insert(files, { path = M.path(buf), changes = changes })
    end
  end
  table.sort(files, function(one, other)
    return one.path < other.path
  end)
  return files
end

--- Forget the proposals with the cause of one, and silence it for a while.
---@param proposal lcursor.NextProposal
local function mute(proposal)
  local words = {}
  for _, word in ipairs(view.words(proposal) or {}) do
    vim.list_extend(words, { proposal.old[1]:sub(word.first + 1, word.last), word.new })
  end
  muted[proposal.group] = { at_ms = vim.uv.now(), words = words }
  for _, state in pairs(states) do
    state.silence = "muted"
    state.proposals = vim.tbl_filter(function(other)
      return other.group ~= proposal.group
    end, state.proposals)
  end
end

--- Report to the host what the user decided.
local function report(proposal, is_accepted)
  local outcome = { kind = proposal.kind, filetype = vim.bo.filetype, is_accepted = is_accepted }
  rpc.notify("next_edit.outcome", outcome)
end

--- Note that the user decided about a proposal and all others with its cause.
---@param proposal lcursor.NextProposal
function M.decide(proposal, is_accepted)
  report(proposal, is_accepted)
  mute(proposal)
end

--- Note an edit: a rejected group whose words it changes may come back after a while.
---@param edit lcursor.NextEdit
function M.edited(edit)
  local lines = table.concat(edit.old, "\n") .. "\n" .. table.concat(edit.new, "\n")
  for group, it in pairs(muted) do
    local is_touched = #it.words == 0
      or vim.iter(it.words):any(function(word)
        return word ~= "" and lines:find(word, 1, true) ~= nil
      end)
    if is_touched and vim.uv.now() - it.at_ms >= MUTE_MS then
      muted[group] = nil
    end
  end
end

--- Write one proposal.
---@return integer[] position behind the change
local function write(buf, row, proposal)
  local words = view.words(proposal)
  if not words then
    local last = row + #proposal.new - 1
    api.nvim_buf_set_lines(buf, row, row + #proposal.old, true, proposal.new)
    return { math.max(last, 0), #(proposal.new[#proposal.new] or "") }
  end
  local column = 0
  for i = #words, 1, -1 do
    local word = words[i]
    api.nvim_buf_set_text(buf, row, word.first, row, word.last, { word.new })
    column = i == #words and word.first + #word.new or column + #word.new - (word.last - word.first)
  end
  return { row, column }
end

--- Remove a proposal that was applied.
---@param buf lcursor.NextTarget
---@param proposal lcursor.NextProposal
local function finish(buf, proposal)
  local state = states[buf]
  state.done[proposal.group] = (state.done[proposal.group] or 0) + 1
  state.proposals = vim.tbl_filter(function(other)
    return other ~= proposal
  end, state.proposals)
end

--- Write a proposal, unless its lines changed.
---@param proposal lcursor.NextProposal
---@return integer[]? position behind the change
function M.apply(buf, proposal)
  local row = M.row(buf, proposal)
  if not row then
    return nil
  end
  local position = write(buf, row, proposal)
  report(proposal, true)
  finish(buf, proposal)
  return position
end

--- List all proposals, of all files, in the quickfix window.
function M.list()
  local items = {}
  for buf, state in pairs(states) do
    for _, proposal in ipairs(state.proposals) do
      local row = M.row(buf, proposal)
      if row then
        local text = vim.trim(proposal.new[1] or ("delete " .. vim.trim(proposal.old[1])))
        table.insert(items, { filename = M.path(buf), lnum = row + 1, text = text, type = "I" })
      end
    end
  end
  if #items == 0 then
    return notify.info("no next edits")
  end
  table.sort(items, function(one, other)
    return one.filename < other.filename
      or (one.filename == other.filename and one.lnum < other.lnum)
  end)
  local title = "lcursor: " .. many(#items, "next edit")
  vim.fn.setqflist({}, " ", { title = title, items = items })
  vim.cmd(("botright copen %d"):format(math.min(#items, 8)))
end

rpc.on("next_edit.gate", function(params)
  hidden = {}
  for _, it in ipairs(params.hidden) do
    hidden[it.kind .. " " .. it.filetype] = it.until_s
  end
end)

return M
