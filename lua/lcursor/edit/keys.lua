-- The keys of edits, mapped in a buffer only while they do something: those for hunks while it has
-- open ones or may get some, the one that stops while an edit of it runs.

local keymaps = require("lcursor.editor.keymaps")
local notify = require("lcursor.ui.notify")
local proposals = require("lcursor.edit.proposals")

local M = {}

local api = vim.api

--- Return the proposal of the hunk at the cursor, else the newest that is open.
---@return lcursor.EditProposal?
function M.proposal()
  local hunk = require("lcursor.edit.hunks").at_cursor()
  if hunk then
    return hunk.part.proposal
  end
  return vim.iter(proposals.all()):rev():find(function(proposal)
    return not proposal.is_hidden and not proposals.is_decided(proposal)
  end)
end

--- Return a function that calls a function of hunks.lua.
---@param by? integer a step, repeated [count] times
---@return fun(): string?
local function hunks(name, by)
  return function()
    return require("lcursor.edit.hunks")[name](by and by * vim.v.count1)
  end
end

--- Return a function that calls a function of edits.lua with the proposal at the cursor.
---@param by? integer
---@return fun()
local function edits(name, by)
  return function()
    local proposal = M.proposal()
    if not proposal then
      return notify.info("no open hunks")
    end
    require("lcursor.edit.edits")[name](proposal, by)
  end
end

---@type table<string, fun(): string?>
local ACTIONS = {
  stop = function()
    require("lcursor.edit").stop()
  end,
  accept = hunks("accept"),
  reject = hunks("reject"),
  accept_operator = hunks("accept_operator"),
  reject_operator = hunks("reject_operator"),
  accept_next = hunks("accept_next"),
  next = hunks("next", 1),
  prev = hunks("next", -1),
  last = hunks("go_to_end", 1),
  first = hunks("go_to_end", -1),
  object = hunks("select"),
  diff = function()
    require("lcursor.edit.side_by_side").toggle()
  end,
  edit = hunks("edit"),
  list = function()
    require("lcursor.edit.quickfix").open()
  end,
  accept_file = hunks("accept_file"),
  reject_file = hunks("reject_file"),
  accept_all = edits("accept"),
  reject_all = edits("reject"),
  next_alternative = edits("cycle", 1),
  prev_alternative = edits("cycle", -1),
  again = edits("again"),
}

--- Run the action of a key.
---@param action string
---@return string? what to type
function M.press(action)
  require("lcursor.edit").start()
  return ACTIONS[action]()
end

local TRANSCRIPTS = { lcursor_chat = true, lcursor_agent = true }

--- Map the keys that a buffer needs now, and no others. Those of hunks stay until all files of the
--- edit are decided. They are also mapped while an edit runs, and in the transcript that an edit
--- comes from: `ghh` would begin Select mode there, and replace text.
---@param buf integer
function M.sync(buf)
  local is_loaded = api.nvim_buf_is_loaded(buf)
  local has_hunks = is_loaded and proposals.is_concerned(buf)
  if is_loaded and TRANSCRIPTS[vim.bo[buf].filetype] then
    has_hunks = proposals.count() > 0
  end
  local is_running = is_loaded and #require("lcursor.edit").running(buf) > 0
  local is_wanted = { hunk = has_hunks or is_running, edit = is_running }
  for group, wanted in pairs(is_wanted) do
    keymaps[wanted and "map" or "unmap"](group, buf, M.press)
  end
end

return M
