-- Asks for a change of a region or of the project, and for another try of one. Knows what was asked
-- in this session; what becomes of it is init.lua's.

local edit = require("lcursor.edit")
local look = require("lcursor.edit.look")
local notify = require("lcursor.notify")
local reader = require("lcursor.edit.reader")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.asked")
local MOST_KNOWN = 40 -- edits that can be tried again

---@type lcursor.EditRun[] the oldest first
local known = {}

---@param run lcursor.EditRun
---@param first integer
---@param last integer
local function remember(run, first, last)
  run.mark = api.nvim_buf_set_extmark(run.buf, namespace, first, 0, {
    end_row = last,
    end_col = 0,
    end_right_gravity = false,
    strict = false,
  })
  table.insert(known, run)
  if #known > MOST_KNOWN then
    local oldest = table.remove(known, 1)
    if api.nvim_buf_is_valid(oldest.buf) then
      api.nvim_buf_del_extmark(oldest.buf, namespace, oldest.mark)
    end
  end
end

---@class (exact) lcursor.EditAgain
---@field id integer of the edit before
---@field remark string "" for another way of doing the same
---@field instead string key of the turn that was proposed

--- Ask for a change of a region, or of the project.
---@param buf integer
---@param first integer row of the selection, or of the cursor
---@param last integer behind it; the same where nothing is selected
---@param instruction string
---@param opts { project?: boolean, model?: string, again?: lcursor.EditAgain }
---@return lcursor.EditRun?
function M.ask(buf, first, last, instruction, opts)
  local is_project = opts.project == true
  local refusal = reader.refusal(buf)
  if refusal and not is_project then
    return notify.warn(refusal)
  end
  local text = not refusal and reader.text(buf) or { path = reader.here(), tick = -1, text = "" }
  local again = opts.again or { id = 0, remark = "", instead = nil }
  local model = opts.model or ""
  local buffers = reader.unsaved(buf)
  if is_project and not refusal then
    table.insert(buffers, 1, text)
  end
  local run = edit.begin("edit.ask", {
    scope = is_project and "project" or "region",
    path = text.path,
    name = refusal and "" or reader.name(buf),
    filetype = refusal and "" or vim.bo[buf].filetype,
    tick = text.tick,
    text = text.text,
    first_row = refusal and 0 or first,
    last_row = refusal and 0 or last,
    instruction = instruction,
    attachments = edit.collect(instruction),
    buffers = buffers,
    model = model,
    again = again.id,
    remark = again.remark,
    served = look.served(),
  }, {
    what = is_project and "project" or "region",
    buf = not is_project and buf or nil,
    first = first,
    last = last,
    instruction = instruction,
    model = model,
    instead = again.instead,
  })
  if run and run.buf then
    remember(run, first, last)
  end
  return run
end

--- The edit that a turn came from, where it can be tried again.
---@param turn lcursor.EditTurn
---@return lcursor.EditRun?
function M.origin(turn)
  for _, run in ipairs(known) do
    if run.id == turn.id then
      return run
    end
  end
end

--- Try an edit again: with what was wrong, or in another way.
---@param turn lcursor.EditTurn that it led to
---@param remark string
---@return lcursor.EditRun?
function M.again(turn, remark)
  local run = M.origin(turn)
  local at = {}
  if run and api.nvim_buf_is_loaded(run.buf) then
    at = api.nvim_buf_get_extmark_by_id(run.buf, namespace, run.mark, { details = true })
  end
  if not run or not at[1] then
    return notify.info("this change cannot be tried again; ask for it anew with :LCEdit")
  elseif #edit.running(run.buf) > 0 then
    return notify.info("an edit of this buffer is being written")
  end
  local again = { id = run.id, remark = remark, instead = turn.key }
  local first = at[1]
  local last = math.max(at[3].end_row or first, first)
  return M.ask(run.buf, first, last, run.instruction, { model = run.model, again = again })
end

return M
