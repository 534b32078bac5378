-- The proposals of each buffer: where they are now, in which order they come, which groups of them
-- the user rejected. Extmarks move them with the text; one whose lines changed is not shown. A file
-- that is not open has a buffer that is not loaded.

local diff = require("lcursor.diff")
local many = require("lcursor.text").many
local notify = require("lcursor.notify")
local rpc = require("lcursor.rpc")
local view = require("lcursor.next_edit.view")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.next_edit.queue")
local MUTE_MS = 30 * 1000

---@class (exact) lcursor.NextProposal as on the wire, and its place
---@field kind "rename"|"signature"|"repetition"|"model"|"diagnostics" the last: by a server
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
---@field has_hidden boolean whether there are others, of a kind that the user rejects

---@type table<integer, lcursor.NextQueue> by buffer
local states = {}
---@type table<string, { at_ms: integer, words: string[] }> by group that was rejected
local muted = {}
---@type table<string, number> by kind and filetype: until when it is hidden, as the host says
local hidden = {}

--- Return where a proposal is now; nil if its lines changed.
---@param buf integer
---@param proposal lcursor.NextProposal
---@return integer? row
function M.row(buf, proposal)
  if not proposal.mark then
    return not api.nvim_buf_is_loaded(buf) and proposal.row or nil
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
---@param buf integer
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

--- Return a proposal of another buffer, of the first one by name.
---@param buf integer
---@return integer? other
---@return lcursor.NextProposal?
---@return integer? row
function M.elsewhere(buf)
  local others = vim.tbl_filter(function(other)
    return other ~= buf and api.nvim_buf_is_valid(other) and M.first(other) ~= nil
  end, vim.tbl_keys(states))
  table.sort(others, function(one, other)
    return api.nvim_buf_get_name(one) < api.nvim_buf_get_name(other)
  end)
  if others[1] then
    return others[1], M.first(others[1])
  end
end

--- Return the proposals with the same cause, in their order.
---@param buf integer
---@param proposal lcursor.NextProposal
---@return lcursor.NextProposal[]
function M.group(buf, proposal)
  return vim.tbl_filter(function(other)
    return other.group == proposal.group and M.row(buf, other) ~= nil
  end, states[buf] and states[buf].proposals or {})
end

--- Return which of several a proposal is; "" for a single one.
---@param buf integer
---@param proposal lcursor.NextProposal
---@return string
function M.count(buf, proposal)
  local left, done = #M.group(buf, proposal), states[buf].done[proposal.group] or 0
  return left + done > 1 and ("%d of %d"):format(done + 1, done + left) or ""
end

---@return boolean
local function is_same(one, other)
  return diff.is_same(one.old, other.old) and diff.is_same(one.new, other.new)
end

--- Forget the proposals of a buffer.
---@param buf integer
function M.clear(buf)
  if states[buf] and api.nvim_buf_is_loaded(buf) then
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
  states[buf] = nil
end

--- Forget all proposals after an undo; groups of which some were applied are silent then.
function M.clear_all()
  for buf, state in pairs(states) do
    for group in pairs(state.done) do
      muted[group] = { at_ms = vim.uv.now(), words = {} }
    end
    M.clear(buf)
  end
end

---@return string of the current filetype
local function kind_of(proposal)
  return proposal.kind .. " " .. vim.bo.filetype
end

--- Whether a kind is hidden, because the user rejected it repeatedly.
local function is_unwanted(proposal)
  return (hidden[kind_of(proposal)] or 0) > os.time()
end

--- Whether a buffer has proposals that are hidden because their kind was rejected.
---@param buf integer
---@return boolean
function M.has_hidden(buf)
  return states[buf] ~= nil and states[buf].has_hidden
end

---@return lcursor.NextProposal[] those of the host, or the fixes of diagnostics, with their rows
local function of_source(buf, is_fix)
  return vim.tbl_filter(function(proposal)
    proposal.row = M.row(buf, proposal) or -1
    return (proposal.kind == "diagnostics") == is_fix and proposal.row >= 0
  end, states[buf] and states[buf].proposals or {})
end

--- Return the fixes of diagnostics, and set their rows to where they are now.
---@param buf integer
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

--- Set the proposals of the host for a buffer, or the fixes of diagnostics; the others stay. The
--- visible one stays the first if it is still among them; those with its cause follow, from there
--- downwards, and then from the top.
---@param buf integer
---@param proposals lcursor.NextProposal[] as on the wire, best first
---@param from integer row of the last edit
---@param is_fix? boolean
function M.set(buf, proposals, from, is_fix)
  local before, shown, shown_row = states[buf], M.first(buf)
  local others = of_source(buf, not is_fix)
  proposals = joined(is_fix and others or proposals, is_fix and proposals or others)
  local found, done, has_hidden = {}, {}, is_fix and before and before.has_hidden or false
  for _, proposal in ipairs(proposals) do
    if is_unwanted(proposal) then
      has_hidden = true
    elseif not muted[proposal.group] then
      local is_shown = shown and proposal.row == shown_row and is_same(proposal, shown)
      table.insert(found, is_shown and shown or proposal)
      done[proposal.group] = before and before.done[proposal.group]
    end
  end
  local same = vim.list_contains(found, shown) and shown or nil
  local group = (same or found[1] or {}).group
  from = same and shown_row or from
  local rows, ranks = {}, {}
  for i, proposal in ipairs(found) do
    local row = proposal == shown and shown_row or proposal.row
    rows[proposal] = row
    ranks[proposal] = proposal == same and -3
      or proposal.group ~= group and i
      or row >= from and -2
      or -1
  end
  table.sort(found, function(one, other)
    if ranks[one] ~= ranks[other] then
      return ranks[one] < ranks[other]
    end
    return rows[one] < rows[other]
  end)
  M.clear(buf)
  states[buf] = { proposals = found, done = done, has_hidden = has_hidden }
  for _, proposal in ipairs(api.nvim_buf_is_loaded(buf) and found or {}) do
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
  for buf in pairs(states) do
    if not api.nvim_buf_is_loaded(buf) then
      M.clear(buf)
    end
  end
  local by_path = {} ---@type table<string, lcursor.NextProposal[]>
  for _, proposal in ipairs(proposals) do
    by_path[proposal.path] = by_path[proposal.path] or {}
    table.insert(by_path[proposal.path], proposal)
  end
  for path, some in pairs(by_path) do
    local buf = vim.fn.bufadd(vim.fn.fnamemodify(path, ":."))
    if not api.nvim_buf_is_loaded(buf) then
      M.set(buf, some, 0)
    end
  end
end

--- Place the proposals of a file that was not open when they came.
---@param buf integer loaded
function M.opened(buf)
  local state = states[buf]
  if state then
    states[buf] = nil
    M.set(buf, state.proposals, 0)
  end
end

--- Return the changes of the proposals with a cause, as `edit.propose` takes them.
---@param group string
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
      table.insert(files, { path = api.nvim_buf_get_name(buf), changes = changes })
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
    state.proposals = vim.tbl_filter(function(other)
      return other.group ~= proposal.group
    end, state.proposals)
  end
end

--- Report to the host what the user decided.
---@param is_accepted boolean
local function report(proposal, is_accepted)
  local outcome = { kind = proposal.kind, filetype = vim.bo.filetype, is_accepted = is_accepted }
  rpc.notify("next_edit.outcome", outcome)
end

--- Note that the user accepts a proposal with all others of its cause.
---@param proposal lcursor.NextProposal
function M.accept_all(proposal)
  report(proposal, true)
  mute(proposal)
end

--- Note that the user rejected a proposal.
---@param proposal lcursor.NextProposal
function M.reject(proposal)
  report(proposal, false)
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

--- Write a proposal, unless its lines changed.
---@param buf integer
---@param proposal lcursor.NextProposal
---@return integer[]? position behind the change
function M.apply(buf, proposal)
  local state, row = states[buf], M.row(buf, proposal)
  if not row then
    return nil
  end
  local position = write(buf, row, proposal)
  report(proposal, true)
  state.done[proposal.group] = (state.done[proposal.group] or 0) + 1
  state.proposals = vim.tbl_filter(function(other)
    return other ~= proposal
  end, state.proposals)
  return position
end

--- List all proposals, of all buffers, in the quickfix window.
function M.list()
  local items = {}
  for buf, state in pairs(states) do
    for _, proposal in ipairs(state.proposals) do
      local row = M.row(buf, proposal)
      if row then
        local text = vim.trim(proposal.new[1] or ("delete " .. vim.trim(proposal.old[1])))
        table.insert(items, { bufnr = buf, lnum = row + 1, text = text, type = "I" })
      end
    end
  end
  if #items == 0 then
    return notify.info("no next edits")
  end
  table.sort(items, function(one, other)
    return one.bufnr < other.bufnr or (one.bufnr == other.bufnr and one.lnum < other.lnum)
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
