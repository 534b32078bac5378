-- Why there is a next edit here, or none; for `:LCursor why`.

local config = require("lcursor.config")
local diagnostics = require("lcursor.next_edit.diagnostics")
local gate = require("lcursor.next_edit.gate")
local many = require("lcursor.text").many
local queue = require("lcursor.next_edit.queue")

local M = {}

---@type table<string, string> code -> why nothing follows from the last change
local REASONS = {
  waiting = "the host has not answered yet",
  undo = "the last change was an undo or a redo",
  other = "the last change was too large, or not yours",
  macro = "a macro is being recorded",
  muted = "you dismissed it, or undid one like it",
  hidden = "this kind is hidden for a while, because you rejected the last ones",
}

--- Return what causes a next edit, and why it is not shown.
---@param target lcursor.NextTarget its file
---@param proposal lcursor.NextProposal
---@param buf integer the current one
local function describe(target, proposal, buf, is_shown)
  local count, witness = #queue.group(target, proposal), diagnostics.witness(target, proposal)
  local cause = proposal.cause .. (witness and (", and %s reports it"):format(witness) or "")
  local text = ("Next edit: %s; %s left."):format(cause, many(count, "change"))
  if is_shown then
    return text
  end
  local code = gate.block_reason(buf)
  local hidden = "it is hidden some seconds after a change; see :LCursor next."
  return ("%s Not shown: %s"):format(text, code and gate.SENTENCES[code] or hidden)
end

--- Return what causes the next edit in the current buffer, or why there is none. If the file is not
--- read at all, the reason that suggestions give applies, and this one is empty.
---@param buf integer the current one
---@return string "" if nothing was changed
function M.text(buf, is_shown)
  local target, proposal = buf, queue.first(buf)
  if not proposal then
    target, proposal = queue.elsewhere(buf)
  end
  if proposal then
    return describe(target, proposal, buf, is_shown)
  end
  local reason = queue.silence(buf)
  if gate.buffer_block_reason(buf) == "big_file" then
    return "This file has no next edits: it has more than 10,000 lines or 1 MiB."
  elseif config.for_buffer(buf).next_edit.mode == "off" then
    return "Next edits are off (next_edit.mode)."
  elseif not reason or vim.api.nvim_get_mode().mode:find("^n?i") then
    return "" -- the question is about suggestions
  end
  return ("No next edit: %s."):format(REASONS[reason] or reason)
end

return M
