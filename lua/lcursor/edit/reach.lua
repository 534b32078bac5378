-- The commands of edits and `edit{}` of the Lua API: what a user says, as the functions here. Owns
-- how a range, a selection and a quickfix window are read.

local edit = require("lcursor.edit")
local notify = require("lcursor.notify")
local reader = require("lcursor.edit.reader")
local region = require("lcursor.edit.region")
local words = require("lcursor.edit.words")

local M = {}

local api = vim.api

---@class (exact) lcursor.EditTarget
---@field buf integer
---@field first integer
---@field last integer
---@field items? table[] of a quickfix list
---@field project boolean

--- What a prompt is about, for its title.
---@param target lcursor.EditTarget
---@return string
local function title(target)
  if target.items then
    return "edit " .. words.many(#target.items, "place")
  elseif target.project then
    return "edit the project"
  end
  local name = vim.fs.basename(api.nvim_buf_get_name(target.buf))
  return "edit " .. words.place(name, target.first, target.last)
end

---@param target lcursor.EditTarget
---@param instruction string
---@param model? string
local function ask(target, instruction, model)
  if target.items then
    return require("lcursor.edit.many").ask(target.items, instruction, model)
  end
  local opts = { project = target.project, model = model }
  return region.ask(target.buf, target.first, target.last, instruction, opts)
end

---@param target lcursor.EditTarget
---@param instruction? string
---@param model? string
local function begin(target, instruction, model)
  if instruction and instruction:find("%S") then
    return ask(target, vim.trim(instruction), model)
  end
  local why = not target.items and not target.project and reader.refusal(target.buf)
  if why then
    return notify.warn(why) -- before anything is typed in vain
  end
  -- What was meant moves with what happens to the text meanwhile.
  local space = api.nvim_create_namespace("lcursor.edit.target")
  local mark = not target.items
    and api.nvim_buf_set_extmark(target.buf, space, target.first, 0, {
      end_row = target.last,
      end_col = 0,
      hl_group = target.last > target.first and "LCursorEditRegion" or nil,
      hl_eol = true,
      strict = false,
    })
  local opts = { title = title(target), path = reader.here() }
  if not target.items and not target.project then
    opts.rows = { target.first, target.last }
  end
  require("lcursor.edit.ask").open(opts, function(text)
    if mark and api.nvim_buf_is_loaded(target.buf) then
      local at = api.nvim_buf_get_extmark_by_id(target.buf, space, mark, { details = true })
      api.nvim_buf_del_extmark(target.buf, space, mark)
      target.first = at[1] or target.first
      target.last = at[3] and at[3].end_row or target.last
    end
    if text then
      ask(target, text, model)
    end
  end)
end

---@param buf integer
---@param range? integer[] first and last line, from 1
---@return integer first
---@return integer last
local function rows(buf, range)
  if range then
    local count = api.nvim_buf_line_count(buf)
    return math.max(range[1] - 1, 0), math.min(range[2], count)
  end
  local row = buf == api.nvim_get_current_buf() and api.nvim_win_get_cursor(0)[1] - 1 or 0
  return row, row
end

---@param range? integer[]
---@param is_project boolean
---@return lcursor.EditTarget
local function target_of(range, is_project)
  local buf = api.nvim_get_current_buf()
  local items = not is_project and require("lcursor.edit.many").here() or nil
  if items and range then
    items = vim.list_slice(items, range[1], range[2])
  end
  local first, last = rows(buf, range)
  return { buf = buf, first = first, last = last, items = items, project = is_project }
end

--- `:LCEdit`: with a range its lines are meant, with a bang the whole project, in a quickfix window
--- all its entries; without an instruction a small window asks for one.
---@param opts vim.api.keyset.create_user_command.command_args
function M.command(opts)
  if edit.is_on() then
    local range = opts.range > 0 and { opts.line1, opts.line2 } or nil
    begin(target_of(range, opts.bang), opts.args)
  end
end

---@return integer[]? first and last line of what is selected right now, from 1
local function selected()
  if api.nvim_get_mode().mode:find("^[vV\22]") then
    local one, other = vim.fn.line("v"), vim.fn.line(".")
    vim.cmd("normal! \27")
    return { math.min(one, other), math.max(one, other) }
  end
end

---@class lcursor.EditCall
---@field instruction? string asked at once; nil opens the prompt
---@field range? integer[] first and last line, from 1; nil is the selection, else the cursor
---@field project? boolean plan a change of the whole project
---@field model? string

--- `edit{}` of the Lua API.
---@param opts lcursor.EditCall
function M.run(opts)
  local known = { "instruction", "range", "project", "model" }
  for name in pairs(opts) do
    if not vim.list_contains(known, name) then
      return notify.warn(
        ("edit{}: there is no %s; see :help lcursor.edit()"):format(tostring(name))
      )
    end
  end
  if edit.is_on() then
    local range = opts.range or selected()
    begin(target_of(range, opts.project == true), opts.instruction, opts.model)
  end
end

--- What `:LCursor {word}` does.
---@type table<string, fun(args: string[], range?: integer[])>
local COMMANDS = {
  undo = function()
    require("lcursor.edit.turns").revert("undo")
  end,
  redo = function()
    require("lcursor.edit.turns").revert("redo")
  end,
  edits = function()
    require("lcursor.edit.turns").list()
  end,
  hunks = function()
    require("lcursor.edit.quickfix").open()
  end,
  commit = function()
    require("lcursor.edit.commit").ask()
  end,
  fix = function(_, range)
    require("lcursor.edit.diagnostic").ask(range and { range[1] - 1, range[2] } or nil)
  end,
  apply = function(args)
    require("lcursor.edit.apply").register(args[1])
  end,
  stop = function()
    if edit.stop() == 0 then
      notify.info("no edit runs")
    end
  end,
}

---@param what "accept"|"reject"
---@return fun(args: string[], range?: integer[])
local function decide(what)
  return function(args, range)
    local hunks = require("lcursor.edit.hunks")
    local word = args[1]
    if word == "all" then
      local turn = require("lcursor.edit.keys").turn()
      if not turn then
        return notify.info("no changes are proposed")
      end
      return require("lcursor.edit.turns")[what](turn)
    elseif word == "file" then
      return hunks[what .. "_file"]()
    elseif word then
      return notify.warn((":LCursor %s knows file and all, not %s"):format(what, word))
    elseif range then
      return hunks[what](range[1] - 1, range[2])
    end
    hunks[what]()
  end
end

COMMANDS.accept, COMMANDS.reject = decide("accept"), decide("reject")

--- `:LCursor {word} {args}`.
---@param word string
---@param args string[]
---@param range? integer[] first and last line, from 1
function M.word(word, args, range)
  if edit.is_on() then
    COMMANDS[word](args, range)
  end
end

--- For `:LCursor status` and the health report.
---@return string? nil where there is nothing to say
function M.describe()
  local store = require("lcursor.edit.store")
  local running, open = #edit.running(), store.count()
  if running == 0 and open == 0 then
    return nil
  end
  local files = {}
  for _, part in ipairs(store.parts()) do
    files[part.file.path] = true
  end
  local changes, where = words.many(open, "change"), words.many(vim.tbl_count(files), "file")
  return ("%d running, %s open in %s"):format(running, changes, where)
end

return M
