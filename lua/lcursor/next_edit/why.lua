-- Why there is a next edit here, or none; for `:LCursor why`.

local config = require("lcursor.config")
local diagnostics = require("lcursor.next_edit.diagnostics")
local gate = require("lcursor.next_edit.gate")
local many = require("lcursor.text").many
local queue = require("lcursor.next_edit.queue")

local M = {}

---@type table<string, string> code -> what became of the last change
local ENDS = {
  waiting = "the host has not answered yet",
  undo = "the last change was an undo or a redo",
  other = "the last change was too large, or not yours",
  macro = "a macro is being recorded",
  muted = "you dismissed it, or undid one like it",
  hidden = "such ones are hidden here for a while: you rejected the last ones",
}

---@type table<integer, string> by buffer: a code of ENDS, or a reason
local ends = {}

--- Remember why nothing follows from the last change of a buffer.
---@param buf integer
---@param reason? string or a code of ENDS; nil: something follows
function M.note(buf, reason)
  ends[buf] = reason
end

--- Return what causes the next edit of a buffer, or why it is not shown. Why a file is not read at
--- all, suggestions say.
---@param buf integer
---@param is_shown boolean
---@param code? string of gate.lua: why it is not
---@return string "" if nothing was changed
function M.text(buf, is_shown, code)
  local target, proposal = buf, queue.first(buf)
  if not proposal then
    target, proposal = queue.elsewhere(buf)
  end
  if proposal then
    local count, witness = #queue.group(target, proposal), diagnostics.witness(target, proposal)
    local cause = proposal.cause .. (witness and (", and %s reports it"):format(witness) or "")
    local text = ("Next edit: %s; %s left."):format(cause, many(count, "change"))
    if code then
      return ("%s Not shown: %s"):format(text, gate.SENTENCES[code])
    end
    return is_shown and text
      or text .. " Not shown: it is hidden some seconds after a change; see :LCursor next."
  end
  local reason = queue.silence(buf) or ends[buf]
  if gate.buffer_block_reason(buf) == "big_file" then
    return "This file has no next edits: it has more than 10,000 lines or 1 MiB."
  elseif config.for_buffer(buf).next_edit.mode == "off" then
    return "Next edits are off (next_edit.mode)."
  elseif not reason or vim.api.nvim_get_mode().mode:find("^n?i") then
    return "" -- the question is about suggestions
  end
  return ("No next edit: %s."):format(ENDS[reason] or reason)
end

return M
