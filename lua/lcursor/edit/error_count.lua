-- After hunks were accepted, shows next to them how many errors the language servers of the buffer
-- reported before and report now. The note goes with the next change.

local buffers = require("lcursor.editor.buffers")
local notes = require("lcursor.ui.notes")
local notify = require("lcursor.ui.notify")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.lsp")
local on = notify.autocmds("edit.lsp")
local QUIET_MS = 700 -- without news, the servers have reported everything
local GIVE_UP_MS = 8000

---@type table<integer, uv.uv_timer_t> by buffer
local timers = {}

---@return integer
local function count_errors(buf)
  return #vim.diagnostic.get(buf, { severity = vim.diagnostic.severity.ERROR })
end

--- Return the note for so many errors before and after; "" where there are none.
---@param before integer
---@param after integer
---@return string
---@return string group
function M.note(before, after)
  if before == 0 and after == 0 then
    return "", ""
  elseif after == before then
    return ("errors: %d, as before"):format(after), "LCursorEditBadge"
  end
  local hl = after > before and "LCursorEditFailed" or "LCursorEditBadge"
  return ("errors: %d → %d"):format(before, after), hl
end

local function clear(buf)
  if timers[buf] then
    timers[buf]:close()
    timers[buf] = nil
  end
  if api.nvim_buf_is_valid(buf) then
    api.nvim_clear_autocmds({ group = "lcursor.edit.lsp", buffer = buf })
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
end

---@param mark integer
---@param before integer
local function show(buf, mark, before)
  local text, hl = M.note(before, count_errors(buf))
  local row = api.nvim_buf_get_extmark_by_id(buf, namespace, mark, {})[1]
  clear(buf)
  if text == "" or not row then
    return
  end
  notes.set(buf, namespace, row, { { "  " .. text, hl } })
  local tick = api.nvim_buf_get_changedtick(buf)
  on({ "TextChanged", "InsertEnter" }, function(event)
    if event.event ~= "TextChanged" or api.nvim_buf_get_changedtick(buf) ~= tick then
      clear(buf)
    end
  end, { buffer = buf })
end

local function watch(buf, row)
  clear(buf)
  local mark = api.nvim_buf_set_extmark(buf, namespace, row, 0, { strict = false })
  local before, timer = count_errors(buf), assert(vim.uv.new_timer())
  timers[buf] = timer
  local function after(ms, run)
    local guarded = notify.guarded(function()
      if timers[buf] ~= timer then
        return
      elseif not api.nvim_buf_is_loaded(buf) then
        return clear(buf)
      end
      run()
    end)
    timer:start(ms, 0, vim.schedule_wrap(guarded))
  end
  after(GIVE_UP_MS, function()
    clear(buf)
  end)
  on("DiagnosticChanged", function()
    after(QUIET_MS, function()
      show(buf, mark, before)
    end)
  end, { buffer = buf })
end

--- Watch the errors of a buffer of which hunks were just accepted.
---@param decided lcursor.EditDecided
function M.on_decided(decided)
  local is_accepted = #decided.accepted > 0 and not decided.is_undone
  local buf = is_accepted and buffers.find(decided.path)
  if buf and #vim.lsp.get_clients({ bufnr = buf }) > 0 then
    watch(buf, decided.accepted[1].row)
  end
end

return M
