-- A plan in a window: its steps, one in a line, to strike out, to look at, and to carry out. What
-- becomes of it is the caller's.

local notify = require("lcursor.notify")
local sheet = require("lcursor.ui.list")
local words = require("lcursor.edit.words")

local M = {}

local api = vim.api
local GROUPS = {
  edit = "LCursorEditTitle",
  create = "LCursorEditAdded",
  delete = "LCursorEditRemoved",
  rename = "LCursorEditTitle",
}

---@param text string
---@param cells integer
---@return string
local function fill(text, cells)
  return text .. (" "):rep(cells - vim.fn.strdisplaywidth(text))
end

---@param step lcursor.EditStep
---@return string
local function place(step)
  if step.kind == "rename" then
    return ("%s → %s"):format(step.name, vim.fs.basename(step.to))
  elseif step.kind == "edit" and step.last_row > step.first_row then
    return words.place(step.name, step.first_row, step.last_row)
  end
  return step.name
end

--- The lines of a plan.
---@param steps lcursor.EditStep[]
---@param dropped table<string, true> keys of those struck out
---@return lcursor.Cells[]
function M.cells(steps, dropped)
  local places, whats = 0, 0
  for _, step in ipairs(steps) do
    places = math.max(places, vim.fn.strdisplaywidth(place(step)))
    whats = math.max(whats, vim.fn.strdisplaywidth(step.what))
  end
  return vim.tbl_map(function(step)
    local gone = dropped[step.key] and "LCursorEditDropped" or nil
    return {
      { dropped[step.key] and "− " or "  ", gone or "LCursorEditBadge" },
      { fill(step.kind, 8), gone or GROUPS[step.kind] },
      { fill(place(step), places) .. "  ", gone or "LCursorHitFile" },
      { whats > 0 and (fill(step.what, whats) .. "  ") or "", gone or "LCursorEditBadge" },
      { step["do"], gone or "Normal" },
    }
  end, steps)
end

--- Show a plan.
---@param planned { summary: string, steps: lcursor.EditStep[] } the fields of `edit.planned`
---@param done fun(dropped?: string[]) called once: keys of the steps struck out; nil: not at all
---@return { close: fun() } window to close where nobody waits any more; `done` is not called then
function M.open(planned, done)
  local from = api.nvim_get_current_win()
  local opened = sheet.open("plan")
  local dropped, is_over = {}, false
  local function draw()
    local left = 0
    for _, step in ipairs(planned.steps) do
      left = left + (dropped[step.key] and 0 or 1)
    end
    local summary = vim.trim(planned.summary:gsub("%s+", " "))
    local head = ("%d of %d step%s%s"):format(
      left,
      #planned.steps,
      #planned.steps == 1 and "" or "s",
      summary ~= "" and (": " .. summary) or ""
    )
    local help = "<CR> carries out, dd strikes out, o looks, q leaves it"
    sheet.fill(opened, M.cells(planned.steps, dropped), planned.steps, head, help)
  end
  local function finish(answer)
    if is_over then
      return
    end
    is_over = true
    sheet.close(opened)
    done(answer)
  end
  local function strike()
    for _, step in ipairs(sheet.chosen(opened)) do
      dropped[step.key] = not dropped[step.key] or nil
    end
    draw()
  end
  sheet.map(opened, {
    ["<CR>"] = function()
      if vim.tbl_count(dropped) == #planned.steps then
        return notify.info("all steps are struck out; q leaves the plan")
      end
      finish(vim.tbl_keys(dropped))
    end,
    dd = strike,
    o = function()
      local step = sheet.here(opened)
      if step and step.kind ~= "create" and api.nvim_win_is_valid(from) then
        local name = vim.fn.fnameescape(vim.fn.fnamemodify(step.path, ":."))
        api.nvim_win_call(from, function()
          local is_stuck = vim.bo.modified and not vim.o.hidden
          pcall(vim.cmd[is_stuck and "split" or "edit"], { name })
          pcall(api.nvim_win_set_cursor, 0, { step.first_row + 1, 0 })
          vim.cmd("normal! zvzz")
        end)
      end
    end,
  }, { d = strike })
  -- `sheet.map` gives `q` to itself.
  vim.keymap.set("n", "q", function()
    finish(nil)
  end, { buffer = opened.buf, nowait = true })
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
      sheet.close(opened)
    end,
  }
end

return M
