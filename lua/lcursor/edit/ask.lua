-- Sends edit requests: for a region, for all entries of a quickfix list, to fix diagnostics, and to
-- retry an edit. Remembers the requests of this session.

local attachments = require("lcursor.editor.attachments")
local buffers = require("lcursor.editor.buffers")
local config = require("lcursor.config")
local diagnostics = require("lcursor.editor.diagnostics")
local edit = require("lcursor.edit")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local privacy = require("lcursor.editor.privacy")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.asked")
local MAX_REMEMBERED = 40 -- edits that can be tried again
local MAX_LOCATIONS = 500

---@type lcursor.EditRun[] the oldest first
local remembered = {}

local function remember(run, first, last)
  run.mark = api.nvim_buf_set_extmark(run.buf, namespace, first, 0, {
    end_row = last,
    end_col = 0,
    end_right_gravity = false,
    strict = false,
  })
  table.insert(remembered, run)
  if #remembered > MAX_REMEMBERED then
    local oldest = table.remove(remembered, 1)
    if api.nvim_buf_is_valid(oldest.buf) then
      api.nvim_buf_del_extmark(oldest.buf, namespace, oldest.mark)
    end
  end
end

---@class (exact) lcursor.EditAgain
---@field id integer of the edit before
---@field remark string "" for another way of doing the same
---@field instead string key of its proposal

--- Ask for a change of a region.
---@param buf integer
---@param first integer row of the selection, or of the cursor
---@param last integer the same where nothing is selected
---@param instruction string
---@param opts { model?: string, again?: lcursor.EditAgain }
---@return lcursor.EditRun?
function M.region(buf, first, last, instruction, opts)
  local reason = buffers.block_reason(buf)
  if reason then
    return notify.warn(reason)
  end
  local text = buffers.text(buf)
  local again = opts.again or { id = 0, remark = "" }
  local model = opts.model or ""
  local run = edit.begin("edit.ask", {
    path = text.path,
    name = buffers.name(buf),
    filetype = vim.bo[buf].filetype,
    tick = text.tick,
    text = text.text,
    first_row = first,
    last_row = last,
    instruction = instruction,
    attachments = attachments.collect({}, instruction),
    buffers = buffers.unsaved(buf),
    model = model,
    again = again.id,
    remark = again.remark,
  }, {
    buf = buf,
    first = first,
    last = last,
    instruction = instruction,
    model = model,
    instead = again.instead,
  })
  if run then
    remember(run, first, last)
  end
  return run
end

--- Return the edit that a proposal came from, where it can be tried again.
---@param proposal lcursor.EditProposal
---@return lcursor.EditRun?
function M.origin(proposal)
  return vim.iter(remembered):find(function(run)
    return run.id == proposal.id
  end)
end

--- Try an edit again.
---@param proposal lcursor.EditProposal that it led to
---@param remark string what is wrong with it; "" for another way of doing the same
---@return lcursor.EditRun?
function M.again(proposal, remark)
  local run = M.origin(proposal)
  local mark = {}
  if run and api.nvim_buf_is_loaded(run.buf) then
    mark = api.nvim_buf_get_extmark_by_id(run.buf, namespace, run.mark, { details = true })
  end
  if not run or not mark[1] then
    return notify.info("this edit cannot be tried again; request it with :LCEdit")
  elseif #edit.running(run.buf) > 0 then
    return notify.info("an edit of this buffer is being written")
  end
  local first, last = mark[1], math.max(mark[3].end_row or mark[1], mark[1])
  local again = { id = run.id, remark = remark, instead = proposal.key }
  return M.region(run.buf, first, last, run.instruction, { model = run.model, again = again })
end

--- Return the items of the quickfix or location list that the current window shows.
---@return table[]? nil where it shows none
function M.list_items()
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  if not info or info.quickfix ~= 1 then
    return nil
  end
  local what = { items = 0 }
  return (info.loclist == 1 and vim.fn.getloclist(0, what) or vim.fn.getqflist(what)).items
end

--- Return the places of list items, each line of a file once.
---@param items table[]
---@return table[] with the fields of `EditPlace`
---@return string[] problems
local function locations_of(items)
  local locations, problems, seen, secrets = {}, {}, {}, 0
  for _, item in ipairs(items) do
    local path = item.bufnr > 0 and api.nvim_buf_get_name(item.bufnr) or ""
    if path ~= "" and item.lnum > 0 then
      path = vim.fs.abspath(path)
      local key = ("%s:%d"):format(path, item.lnum)
      if privacy.is_secret_path(path, config.get().privacy.exclude) then
        secrets = secrets + 1
      elseif not seen[key] then
        seen[key] = true
        table.insert(locations, { path = path, row = item.lnum - 1, text = vim.trim(item.text) })
      end
    end
  end
  if secrets > 0 then
    local count = many(secrets, "entry", "entries")
    table.insert(problems, count .. " left out: in files whose names indicate secrets")
  end
  if #locations > MAX_LOCATIONS then
    table.insert(problems, ("only the first %d are used"):format(MAX_LOCATIONS))
    locations = vim.list_slice(locations, 1, MAX_LOCATIONS)
  end
  return locations, problems
end

--- Ask for the same change at the entries of a list.
---@param items table[]
---@param instruction string
---@param model? string
---@return lcursor.EditRun?
function M.list(items, instruction, model)
  local locations, problems = locations_of(items)
  if #problems > 0 then
    notify.warn(table.concat(problems, "; "))
  end
  if #locations == 0 then
    return notify.info("no entry of this list is in a file")
  end
  local function path_of(one)
    return one.path
  end
  local texts = buffers.unsaved()
  local known = vim.tbl_map(path_of, texts)
  for _, text in ipairs(buffers.loaded(vim.tbl_map(path_of, locations))) do -- for their ticks
    if not vim.list_contains(known, text.path) then
      table.insert(texts, text)
    end
  end
  return edit.begin("edit.many", {
    path = locations[1].path,
    locations = locations,
    instruction = instruction,
    buffers = texts,
    model = model or "",
  }, { instruction = instruction, model = model })
end

--- Ask for a change that fixes the diagnostics of the cursor's line, or of a range.
---@param range? integer[] first row and the one after the last
---@return lcursor.EditRun?
function M.fix(range)
  local instruction, row = diagnostics.problems(range)
  if not instruction or not row then
    local where = range and "these lines have" or "this line has"
    return notify.info(where .. " no diagnostics; :lua vim.diagnostic.setqflist() lists all")
  end
  local rows = range or { row, row }
  return M.region(api.nvim_get_current_buf(), rows[1], rows[2], instruction, {})
end

return M
