-- The plan of a project edit in a window: its steps, one per line, to inspect, drop and run.

local buffers = require("lcursor.editor.buffers")
local files = require("lcursor.ui.open")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local list = require("lcursor.ui.list")

local M = {}

local api = vim.api
local GROUPS = {
  edit = "LCursorEditTitle",
  create = "LCursorEditAdded",
  delete = "LCursorEditRemoved",
  rename = "LCursorEditTitle",
}

---@return string
local function padded(text, cells)
  return text .. (" "):rep(cells - vim.fn.strdisplaywidth(text))
end

---@return string
local function location(step)
  if step.kind == "rename" then
    return ("%s → %s"):format(step.name, vim.fs.basename(step.to))
  elseif step.kind == "edit" and step.last_row > step.first_row then
    return buffers.location(step.name, step.first_row, step.last_row)
  end
  return step.name
end

--- Return the lines of a plan.
---@param steps lcursor.EditStep[]
---@param dropped table<string, true> keys of dropped steps
---@return lcursor.Cells[]
function M.cells(steps, dropped)
  local width, whats = 0, 0
  for _, step in ipairs(steps) do
    width = math.max(width, vim.fn.strdisplaywidth(location(step)))
    whats = math.max(whats, vim.fn.strdisplaywidth(step.what))
  end
  return vim.tbl_map(function(step)
    local gone = dropped[step.key] and "LCursorEditDropped" or nil
    return {
      { dropped[step.key] and "− " or "  ", gone or "LCursorEditBadge" },
      { padded(step.kind, 8), gone or GROUPS[step.kind] },
      { padded(location(step), width) .. "  ", gone or "LCursorHitFile" },
      { whats > 0 and (padded(step.what, whats) .. "  ") or "", gone or "LCursorEditBadge" },
      { step["do"], gone or "Normal" },
    }
  end, steps)
end

local function look_at(win, step)
  local here = api.nvim_get_current_win()
  local _, problem = files.file(step.path, { win = win, row = step.first_row })
  api.nvim_set_current_win(here)
  if problem then
    notify.warn(problem)
  end
end

--- Show a plan.
---@param planned { summary: string, steps: lcursor.EditStep[] } the fields of `edit.planned`
---@param done fun(dropped?: string[]) called once with the keys of the dropped steps; nil: canceled
---@return { close: fun() } closes the window without an answer
function M.open(planned, done)
  local from, steps = api.nvim_get_current_win(), planned.steps
  local opened = list.open("plan")
  local dropped, is_over = {}, false
  local function draw()
    local summary = vim.trim(planned.summary:gsub("%s+", " "))
    local count = #steps - vim.tbl_count(dropped)
    local head = ("%d of %s%s"):format(
      count,
      many(#steps, "step"),
      summary ~= "" and (": " .. summary) or ""
    )
    local keys = "<CR> run, dd drop, o show, q cancel"
    list.fill(opened, M.cells(steps, dropped), steps, head, keys)
  end
  local function finish(answer)
    if not is_over then
      is_over = true
      list.close(opened)
      done(answer)
    end
  end
  local function drop()
    for _, step in ipairs(list.chosen(opened)) do
      dropped[step.key] = not dropped[step.key] or nil
    end
    draw()
  end
  list.map(opened, {
    ["<CR>"] = function()
      if vim.tbl_count(dropped) == #steps then
        return notify.info("all steps are dropped; q cancels the plan")
      end
      finish(vim.tbl_keys(dropped))
    end,
    dd = drop,
    o = function()
      local step = list.here(opened)
      if step and step.kind ~= "create" then
        look_at(from, step)
      end
    end,
    q = function()
      finish(nil)
    end,
  }, { d = drop })
  api.nvim_create_autocmd("BufWipeout", {
    buffer = opened.buf,
    once = true,
    callback = vim.schedule_wrap(notify.guarded(function()
      finish(nil)
    end)),
  })
  draw()
  return {
    close = function()
      is_over = true
      list.close(opened)
    end,
  }
end

return M
