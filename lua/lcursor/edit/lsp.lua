-- Says, where language servers are attached, what became of the errors of a buffer after hunks
-- were taken: a badge at the hunk that goes with the next change. Best effort: a server that is
-- slow says nothing here.

local notify = require("lcursor.notify")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.lsp")
local group = api.nvim_create_augroup("lcursor.edit.lsp", { clear = true })
local QUIET_MS = 700 -- without news, the servers have said what they have to say
local PATIENCE_MS = 8000

---@class (exact) lcursor.EditErrorWatch
---@field before integer
---@field mark integer
---@field timer uv.uv_timer_t
---@field since_ms integer
---@field has_news boolean

---@type table<integer, lcursor.EditErrorWatch> by buffer
local watches = {}

---@param buf integer
---@return integer
local function errors(buf)
  return #vim.diagnostic.get(buf, { severity = vim.diagnostic.severity.ERROR })
end

---@param buf integer
local function stop(buf)
  local watch = watches[buf]
  watches[buf] = nil
  if watch and not watch.timer:is_closing() then
    watch.timer:close()
  end
end

---@param buf integer
local function clear(buf)
  if api.nvim_buf_is_valid(buf) then
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
end

--- What is said of so many errors before and after; nothing where there are none.
---@param before integer
---@param after integer
---@return string
---@return string group
function M.badge(before, after)
  if before == 0 and after == 0 then
    return "", ""
  elseif after > before then
    return ("errors: %d → %d"):format(before, after), "LCursorEditFailed"
  elseif after < before then
    return ("errors: %d → %d"):format(before, after), "LCursorEditBadge"
  end
  return ("errors: %d, as before"):format(after), "LCursorEditBadge"
end

---@param buf integer
---@param watch lcursor.EditErrorWatch
local function say(buf, watch)
  stop(buf)
  if not api.nvim_buf_is_loaded(buf) then
    return
  end
  local text, hl = M.badge(watch.before, errors(buf))
  local at = api.nvim_buf_get_extmark_by_id(buf, namespace, watch.mark, {})
  if text == "" or not at[1] then
    return clear(buf)
  end
  api.nvim_buf_set_extmark(buf, namespace, at[1], 0, {
    id = watch.mark,
    virt_text = { { "  " .. text, hl } },
    virt_text_pos = "eol",
    strict = false,
  })
  local tick = api.nvim_buf_get_changedtick(buf)
  api.nvim_create_autocmd({ "TextChanged", "InsertEnter" }, {
    group = group,
    buffer = buf,
    callback = function(event)
      if event.event ~= "TextChanged" or api.nvim_buf_get_changedtick(buf) ~= tick then
        clear(buf)
        return true
      end
    end,
  })
end

---@param buf integer
---@param row integer
local function watch_for(buf, row)
  stop(buf)
  clear(buf)
  local mark = api.nvim_buf_set_extmark(buf, namespace, row, 0, { strict = false })
  local now = vim.uv.now()
  ---@type lcursor.EditErrorWatch
  local watch = {
    before = errors(buf),
    mark = mark,
    timer = assert(vim.uv.new_timer()),
    since_ms = now,
    has_news = false,
  }
  watches[buf] = watch
  local quiet = now
  api.nvim_create_autocmd("DiagnosticChanged", {
    group = group,
    buffer = buf,
    callback = function()
      if watches[buf] ~= watch then
        return true
      end
      watch.has_news, quiet = true, vim.uv.now()
    end,
  })
  watch.timer:start(
    100,
    100,
    vim.schedule_wrap(notify.guarded(function()
      if watches[buf] ~= watch then
        return
      end
      local passed = vim.uv.now()
      if watch.has_news and passed - quiet > QUIET_MS then
        say(buf, watch)
      elseif passed - watch.since_ms > PATIENCE_MS then
        stop(buf)
        clear(buf)
      end
    end))
  )
end

--- Hunks of a file were taken just now.
---@param decided lcursor.EditDecided
function M.decided(decided)
  local direct = require("lcursor.edit.direct")
  local buf = #decided.accepted > 0 and not decided.is_undone and direct.buffer(decided.path)
  if buf and #vim.lsp.get_clients({ bufnr = buf }) > 0 then
    watch_for(buf, decided.accepted[1].row)
  end
end

return M
