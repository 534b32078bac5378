-- A source for blink.cmp: sources.providers.lcursor = { module = "lcursor.integrations.blink",
-- async = true }. Implements blink.cmp.Source; blink filters, sorts and draws.

local items = require("lcursor.integrations.items")
local source = require("lcursor.complete.source")

---@class lcursor.BlinkSource
local M = {}
M.__index = M

local api = vim.api

---@return lcursor.BlinkSource
function M.new()
  return setmetatable({}, M)
end

function M.enabled()
  local mode = api.nvim_get_mode().mode:sub(1, 1)
  return mode ~= "c" and mode ~= "t" and source.is_offered(api.nvim_get_current_buf())
end

---@return string[]
function M.get_trigger_characters()
  return items.TRIGGERS
end

---@param _ lcursor.BlinkSource
---@param ctx table blink.cmp.Context: its `cursor` has a 1-based row and a 0-based column
---@param callback fun(response: table) may be called again, with new items
---@return fun() cancel
function M.get_completions(_, ctx, callback)
  local row, col = ctx.cursor[1] - 1, ctx.cursor[2]
  local first = ctx.bounds and math.min(ctx.bounds.start_col - 1, col)
    or vim.fn.match(ctx.line:sub(1, col), "\\k*$")
  local word, filetype = ctx.line:sub(first + 1, col), vim.bo[ctx.bufnr].filetype
  local kind = ctx.trigger and (ctx.trigger.initial_kind or ctx.trigger.kind)
  ---@type table<string, true> texts that blink has: it appends the items of each call
  local given = {}
  local function give(text, replaces)
    local new = vim.tbl_filter(function(it)
      local is_new = not given[it.insertText]
      given[it.insertText] = true
      return is_new
    end, items.make(word, text, filetype))
    callback({
      items = items.set_range(new, row, first, col + (replaces or 0)),
      is_incomplete_forward = true,
      is_incomplete_backward = true,
    })
  end
  local spot = { buf = ctx.bufnr, row = row, col = col, is_manual = kind == "manual" }
  return source.ask(spot, give, give)
end

return M
