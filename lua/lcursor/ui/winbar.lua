-- Fits a winbar into the width of its windows. Set as plain text when it changes, so that Neovim
-- evaluates nothing while it draws.

local text = require("lcursor.text")

local M = {}

local api = vim.api
local MIN_TITLE = 6 -- cells of one that is cut
local DETAILS = { " of [%d.]+[kM]?", ", [^,]*$", ", [^,]*$" } -- of what it does, first to go

M.NEEDED_RANK = 5 -- parts below it are left out before the title is shortened

---@alias lcursor.WinbarPart { text: string, rank: integer, is_busy?: boolean, group?: string }

---@param str string
---@param cells integer
---@return string
local function cut(str, cells)
  if api.nvim_strwidth(str) <= cells then
    return str
  end
  local head = cells > 1 and vim.trim((text.fit(str, cells - 1))) or ""
  return head ~= "" and head .. "…" or ""
end

--- Fit a title and parts into a width. First parts of a low rank are left out, then the title is
--- shortened, then details of what is being done, and last the parts of a needed rank.
---@param title string
---@param parts lcursor.WinbarPart[]
---@param width integer
---@return string title
---@return lcursor.WinbarPart[]
function M.fit(title, parts, width)
  parts = vim.deepcopy(parts)
  local function remaining()
    local cells = 0
    for i, part in ipairs(parts) do
      local separator = part.is_busy and 2 or i > 1 and 3 or 1
      cells = cells + separator + api.nvim_strwidth(part.text)
    end
    return width - cells
  end
  --- Leave out parts, up to a rank, until so many cells are free.
  local function leave_out(max_rank, cells)
    while #parts > 1 and remaining() < cells do
      local lowest = 1
      for i, part in ipairs(parts) do
        lowest = part.rank < parts[lowest].rank and i or lowest
      end
      if parts[lowest].rank > max_rank then
        return
      end
      table.remove(parts, lowest)
    end
  end
  leave_out(M.NEEDED_RANK - 1, math.min(api.nvim_strwidth(title), 12) + 2)
  local last = parts[#parts]
  for _, detail in ipairs(last and DETAILS or {}) do
    if remaining() < 0 then
      last.text = last.text:gsub(detail, "")
    end
  end
  leave_out(M.NEEDED_RANK, 0)
  if last and remaining() < 0 then
    last.text = cut(last.text, math.max(width - 2, 1))
  end
  local cells = remaining() - 2
  return (cells >= MIN_TITLE or cells >= api.nvim_strwidth(title)) and cut(title, cells) or "",
    parts
end

---@param words string
---@return string
local function escape(words)
  return (words:gsub("%c", " "):gsub("%%", "%%%%"))
end

--- Draw it in all windows of a buffer.
---@param buf integer
---@param title string
---@param parts lcursor.WinbarPart[] in order; the lowest ranks are left out first
function M.draw(buf, title, parts)
  for _, win in ipairs(api.nvim_buf_is_valid(buf) and vim.fn.win_findbuf(buf) or {}) do
    local shown, fitted = M.fit(title, parts, api.nvim_win_get_width(win))
    local bar = shown ~= "" and "%#LCursorChatTitle# " .. escape(shown) .. " %*" or ""
    for i, part in ipairs(fitted) do
      local separator = part.is_busy and "%=%#LCursorChatBusy#" or i > 1 and " · " or " "
      local words = escape(part.text) .. (part.is_busy and " " or "")
      bar = bar .. separator .. (part.group and ("%%#%s#%s%%*"):format(part.group, words) or words)
    end
    if vim.wo[win].winbar ~= bar then
      vim.wo[win][0].winbar = bar
    end
  end
end

return M
