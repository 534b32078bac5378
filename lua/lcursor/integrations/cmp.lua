-- A source for nvim-cmp: require("cmp").register_source("lcursor",
-- require("lcursor.integrations.cmp").new()). Implements cmp.Source; nvim-cmp filters and draws.

local items = require("lcursor.integrations.items")
local source = require("lcursor.complete.source")

---@class lcursor.CmpSource
---@field private cancel? fun() cancels the previous request, because nvim-cmp does not
local M = {}
M.__index = M

---@return lcursor.CmpSource
function M.new()
  return setmetatable({}, M)
end

function M.get_debug_name()
  return "lcursor"
end

function M.is_available()
  return source.is_offered(vim.api.nvim_get_current_buf())
end

function M.get_position_encoding_kind()
  return "utf-8"
end

function M.get_keyword_pattern()
  return [[\k\+]]
end

---@return string[]
function M.get_trigger_characters()
  return items.TRIGGERS
end

--- Return where items begin: at the word, or before it when the text begins with white space,
--- which nvim-cmp removes from the ends of items.
---@param first integer column of the word
local function start_of(before, first, suggested)
  if first == #before and suggested:find("^%s") then
    return #before:match("^(.-)%S*$")
  end
  return first
end

---@param params table cmp.SourceCompletionApiParams: `offset` is the 1-based column of the word
---@param callback fun(response: lsp.CompletionList)
function M:complete(params, callback)
  local ctx = params.context
  local before, buf = ctx.cursor_before_line, ctx.bufnr
  local row, col = ctx.cursor.row - 1, #before
  local filetype = vim.bo[buf].filetype
  local is_manual = ctx.get_reason ~= nil and ctx:get_reason() == "manual"
  if self.cancel then
    self.cancel()
  end
  local spot = { buf = buf, row = row, col = col, is_manual = is_manual }
  self.cancel = source.ask(spot, function(suggested, replaces)
    local first = start_of(before, math.min(params.offset - 1, col), suggested)
    local made = items.make(before:sub(first + 1), suggested, filetype)
    callback({ items = items.set_range(made, row, first, col + replaces), isIncomplete = true })
  end)
end

return M
