-- `:LCEdit`, and `edit{}` of the Lua API.

local buffers = require("lcursor.editor.buffers")
local edit = require("lcursor.edit")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.target")

---@class (exact) lcursor.EditTarget
---@field buf integer
---@field first integer
---@field last integer
---@field items? table[] of a quickfix list

---@return string of the prompt
local function title_of(target)
  if target.items then
    return "edit " .. many(#target.items, "place")
  end
  local name = vim.fs.basename(api.nvim_buf_get_name(target.buf))
  return "edit " .. buffers.location(name, target.first, target.last)
end

---@param model? string
local function ask(target, instruction, model)
  local requests = require("lcursor.edit.ask")
  if target.items then
    return requests.list(target.items, instruction, model)
  end
  return requests.region(target.buf, target.first, target.last, instruction, { model = model })
end

--- Open the prompt for an instruction. The target moves with what happens to the text meanwhile.
---@param model? string
local function prompt(target, model)
  local mark = not target.items
    and api.nvim_buf_set_extmark(target.buf, namespace, target.first, 0, {
      end_row = target.last,
      end_col = 0,
      hl_group = target.last > target.first and "LCursorEditRegion" or nil,
      hl_eol = true,
      strict = false,
    })
  local rows = not target.items and { target.first, target.last } or nil
  local opts = { title = title_of(target), path = buffers.here(), rows = rows }
  require("lcursor.editor.input").open(opts, function(text)
    if mark and api.nvim_buf_is_loaded(target.buf) then
      local at = api.nvim_buf_get_extmark_by_id(target.buf, namespace, mark, { details = true })
      api.nvim_buf_del_extmark(target.buf, namespace, mark)
      target.first = at[1] or target.first
      target.last = at[3] and at[3].end_row or target.last
    end
    if text then
      ask(target, text, model)
    end
  end)
end

---@param range? integer[] first and last line, from 1
---@param instruction? string
---@param model? string
local function begin(range, instruction, model)
  local buf = api.nvim_get_current_buf()
  local items = require("lcursor.edit.ask").list_items()
  if items and range then
    items = vim.list_slice(items, range[1], range[2])
  end
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local first, last = row, row
  if range then
    first, last = math.max(range[1] - 1, 0), math.min(range[2], api.nvim_buf_line_count(buf))
  end
  ---@type lcursor.EditTarget
  local target = { buf = buf, first = first, last = last, items = items }
  if instruction and instruction:find("%S") then
    return ask(target, vim.trim(instruction), model)
  end
  local reason = not items and buffers.block_reason(buf)
  if reason then
    return notify.warn(reason) -- before the user types an instruction
  end
  prompt(target, model)
end

--- `:LCEdit`: about a range, in a quickfix window about its entries. Without an instruction a small
--- window asks for one.
---@param opts vim.api.keyset.create_user_command.command_args
function M.command(opts)
  if opts.args == "--help" then
    require("lcursor.ui.window").help(":LCEdit")
  elseif edit.is_on() then
    begin(opts.range > 0 and { opts.line1, opts.line2 } or nil, opts.args)
  end
end

---@return integer[]? first and last selected line, from 1
local function selection()
  if api.nvim_get_mode().mode:find("^[vV\22]") then
    local one, other = vim.fn.line("v"), vim.fn.line(".")
    vim.cmd("normal! \27")
    return { math.min(one, other), math.max(one, other) }
  end
end

---@class lcursor.EditCall
---@field instruction? string nil opens the prompt
---@field range? integer[] first and last line, from 1; nil is the selection, else the cursor
---@field project? boolean let an agent plan a change of the whole project
---@field model? string

--- `edit{}` of the Lua API.
---@param opts lcursor.EditCall
function M.run(opts)
  local known = { "instruction", "range", "model" }
  for name in pairs(opts) do
    if not vim.list_contains(known, name) then
      return notify.warn(("edit{}: there is no %s; see :help lcursor.edit()"):format(name))
    end
  end
  if edit.is_on() then
    begin(opts.range or selection(), opts.instruction, opts.model)
  end
end

--- Request an edit; for the <Plug> map.
function M.press()
  M.run({})
end

--- Describe running edits and open hunks for `:LCursor status` and the health report.
---@return string? nil where there are none
function M.describe()
  local proposals = require("lcursor.edit.proposals")
  local running, open = #edit.running(), proposals.count()
  if running == 0 and open == 0 then
    return nil
  end
  local files = {}
  for _, part in ipairs(proposals.parts()) do
    files[part.file.path] = true
  end
  local hunks, where = many(open, "hunk"), many(vim.tbl_count(files), "file")
  return ("%d running, %s open in %s"):format(running, hunks, where)
end

return M
