-- Pure functions that lay out the items of a prompt, one in a line. Must not read a buffer.

local M = {}

local MOST_NAME = 60
local KINDS = { system = "instructions", history = "history", question = "question" }

---@param text string
---@param cells integer
---@return string
local function fill(text, cells)
  return text .. (" "):rep(cells - vim.fn.strdisplaywidth(text))
end

---@param text string
---@return string its end, where it is too long
local function short(text)
  local length = vim.fn.strchars(text)
  if length <= MOST_NAME then
    return text
  end
  return "…" .. vim.fn.strcharpart(text, length - MOST_NAME + 1)
end

--- A count with its thousands apart.
---@param count integer
---@return string
function M.count(count)
  local text = ("%d"):format(count):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

---@param item lcursor.ChatItem
---@return string
local function cost(item)
  if item.is_left_out then
    return "-"
  end
  return (item.is_exact and "" or "~") .. M.count(item.tokens)
end

--- What went into a prompt, or would.
---@param items lcursor.ChatItem[]
---@param dropped table<string, boolean> keys that the user does not want
---@return lcursor.Cells[]
function M.rows(items, dropped)
  local kinds, names, costs = 0, 0, 0
  for _, item in ipairs(items) do
    kinds = math.max(kinds, #(KINDS[item.kind] or item.kind))
    names = math.max(names, vim.fn.strdisplaywidth(short(item.name)))
    costs = math.max(costs, #cost(item))
  end
  return vim.tbl_map(function(item)
    local is_out = item.is_left_out or dropped[item.key] == true
    local group = is_out and "LCursorChatNote" or "Normal"
    local sign = dropped[item.key] and "−" or item.is_left_out and "✗" or " "
    local note = dropped[item.key] and "dropped" or item.note
    local price = dropped[item.key] and "-" or cost(item)
    local is_refused = item.is_left_out and not dropped[item.key]
    return {
      { sign .. " ", is_refused and "LCursorChatFailed" or "LCursorChatNote" },
      { fill(KINDS[item.kind] or item.kind, kinds) .. "  ", "LCursorChatNote" },
      { fill(short(item.name), names) .. "  ", group },
      { (" "):rep(costs - #price) .. price, is_out and group or "LCursorChatTokens" },
      { note ~= "" and ("  " .. note) or "", "LCursorChatNote" },
    }
  end, items)
end

--- What all of it comes to.
---@param total integer
---@param limit integer 0 where nobody knows
---@param is_exact boolean
---@return string
function M.total(total, limit, is_exact)
  local sum = (is_exact and "" or "about ") .. M.count(total)
  if limit <= 0 then
    return sum .. " tokens; how many there may be is not known yet"
  end
  local text = ("%s of %s tokens, %d%%"):format(sum, M.count(limit), math.ceil(100 * total / limit))
  return total > limit and (text .. ": too many") or text
end

--- The items to drop first where there is no room: the largest that may be.
---@param items lcursor.ChatItem[]
---@param over integer tokens that are too many
---@return lcursor.ChatItem[]
function M.largest(items, over)
  local free = vim.tbl_filter(function(item)
    return not item.is_left_out and not KINDS[item.kind]
  end, items)
  table.sort(free, function(a, b)
    return a.tokens > b.tokens
  end)
  local chosen = {}
  for _, item in ipairs(free) do
    if over <= 0 then
      break
    end
    table.insert(chosen, item)
    over = over - item.tokens
  end
  return chosen
end

---@param item lcursor.ChatItem
---@return boolean whether it may be dropped
function M.is_free(item)
  return KINDS[item.kind] == nil
end

return M
