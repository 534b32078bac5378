-- Pure functions of a chat's text: headings, what is folded, the winbar, what of a stream may be
-- written yet. Must not read a buffer or an option.

local many = require("lcursor.text").many

local M = {}

M.HEADINGS = { user = "## You", assistant = "## Model", summary = "## Summary" }

local TOKEN_BYTES = 3.6 -- of one token, on the average; the exact count comes at the end

--- Kinds of items that are in every prompt, and of which there is nothing to show.
local ALWAYS = { system = true, history = true, question = true }

--- A count of tokens in at most four signs.
---@param count number
---@return string
function M.short(count)
  if count < 1000 then
    return ("%d"):format(count)
  elseif count < 9950 then
    return (("%.1fk"):format(count / 1000):gsub("%.0k", "k"))
  elseif count < 999500 then
    return ("%.0fk"):format(count / 1000)
  end
  return (("%.1fM"):format(count / 1e6):gsub("%.0M", "M"))
end

--- The size of a context, in the powers of two in which it is given.
---@param count integer
---@return string
function M.size(count)
  return count >= 1024 and count % 1024 == 0 and ("%dk"):format(count / 1024) or M.short(count)
end

--- What of a text may be written: not half a character, not half an end of a line, and no newline
--- before it is known that something follows.
---@param text string
---@return string ready
---@return string held comes before what comes next
function M.hold(text)
  local last = #text
  for i = 1, math.min(3, #text) do
    local byte = text:byte(#text - i + 1)
    if byte >= 0xC0 then
      local length = byte >= 0xF0 and 4 or byte >= 0xE0 and 3 or 2
      last = length > i and #text - i or last
      break
    elseif byte < 0x80 then
      break
    end
  end
  local ready = text:sub(1, last)
  local ends = #(ready:match("[\r\n]*$"))
  last = #ready - ends
  return (ready:sub(1, last):gsub("\r\n", "\n")), text:sub(last + 1)
end

---@param line string
---@param fence? string that is open
---@return string? fence that is open behind the line
local function fence_after(line, fence)
  local sign = line:match("^ ? ? ?(```+)") or line:match("^ ? ? ?(~~~+)")
  if not sign then
    return fence
  elseif not fence then
    return sign
  end
  local is_end = sign:sub(1, 1) == fence:sub(1, 1) and #sign >= #fence
  return not (is_end and line:find("^%s*[`~]+%s*$")) and fence or nil
end

--- Where blocks of markdown end, of which each says the same alone as among the others.
---@param lines string[]
---@param each fun(last: integer) index of a block's last line
local function cut(lines, each)
  local fence
  for i = 1, #lines - 1 do
    local was = fence
    fence = fence_after(lines[i], fence)
    local is_blank = not fence and not was and not lines[i]:find("%S")
    -- What is indented below a blank line may go on with the item of a list above it.
    if (is_blank or (was and not fence)) and lines[i + 1]:find("^%S") then
      each(i)
    end
  end
end

--- How many lines of markdown are whole blocks; the rest may go on.
---@param lines string[]
---@return integer
function M.whole(lines)
  local whole = 0
  cut(lines, function(last)
    whole = last
  end)
  return whole
end

--- Lines of markdown in blocks, not too small ones.
---@param lines string[]
---@param least? integer lines of a block
---@return { first: integer, last: integer }[] 0-based, the last behind it
function M.blocks(lines, least)
  local blocks, first = {}, 0
  cut(lines, function(last)
    if last - first >= (least or 20) then
      table.insert(blocks, { first = first, last = last })
      first = last
    end
  end)
  table.insert(blocks, { first = first, last = #lines })
  return blocks
end

--- Lines of markdown in pieces that are not long. One that begins inside of a block of code is told
--- the line that opened it; such a cut is made above a line that begins something, if there is one.
---@param lines string[]
---@param most integer lines of a piece
---@return { first: integer, last: integer, opening?: string }[] 0-based, the last behind it
function M.pieces(lines, most)
  local pieces, first, fence = {}, 1, nil
  local opening, began ---@type string?, string?
  for i, line in ipairs(lines) do
    local is_border = fence and line:find("^%w") and not (lines[i - 1] or ""):find("%S")
    if i - first >= most or (is_border and i - first >= most / 2) then
      table.insert(pieces, { first = first - 1, last = i - 1, opening = began })
      first, began = i, fence and opening or nil
    end
    local was = fence
    fence = fence_after(line, fence)
    opening = fence and not was and line or opening
  end
  table.insert(pieces, { first = first - 1, last = #lines, opening = began })
  return pieces
end

--- Text in lines of at most so many cells, between words where that goes.
---@param text string
---@param cells integer
---@return string[] lines
function M.wrap(text, cells)
  local lines, line = {}, ""
  cells = math.max(cells, 2)
  for word in text:gmatch("%S+") do
    local longer = line == "" and word or (line .. " " .. word)
    if line ~= "" and vim.fn.strdisplaywidth(longer) > cells then
      table.insert(lines, line)
      longer = word
    end
    line = longer
    while vim.fn.strdisplaywidth(line) > cells do
      local count = cells
      while count > 1 and vim.fn.strdisplaywidth(vim.fn.strcharpart(line, 0, count)) > cells do
        count = count - 1
      end
      table.insert(lines, vim.fn.strcharpart(line, 0, count))
      line = vim.fn.strcharpart(line, count)
    end
  end
  table.insert(lines, line)
  return lines
end

--- Text as a quotation, from its second line on.
---@param text string
---@return string
function M.quote(text)
  return (text:gsub("\n", "\n> "))
end

---@param items lcursor.ChatItem[]
---@return lcursor.ChatItem[] those of which a person wants to know
function M.shown(items)
  return vim.tbl_filter(function(item)
    return not ALWAYS[item.kind]
  end, items)
end

--- One item, as a line of the folded list.
---@param item lcursor.ChatItem
---@return string
function M.item(item)
  local name = item.name
  if item.path ~= "" and item.first_row > 0 and not name:find(":%d") then
    name = ("%s:%d"):format(name, item.first_row + 1)
  end
  local cost = item.is_left_out and "left out"
    or (item.is_exact and "" or "about ")
      .. (item.tokens == 1 and "1 token" or M.short(item.tokens) .. " tokens")
  local note = item.note ~= "" and ("; " .. item.note) or ""
  return ("- %s %s: %s%s"):format(item.kind, name, cost, note)
end

--- What went into a prompt, as lines of a quotation; the first says it in short.
---@param items lcursor.ChatItem[]
---@return string[] empty where there is nothing to say
function M.context(items)
  local shown = M.shown(items)
  if #shown == 0 then
    return {}
  end
  local tokens, out = 0, 0
  for _, item in ipairs(shown) do
    tokens = tokens + (item.is_left_out and 0 or item.tokens)
    out = out + (item.is_left_out and 1 or 0)
  end
  local left = out > 0 and (", %d left out"):format(out) or ""
  local head = ("> context: %s, %s tokens%s"):format(many(#shown, "item"), M.short(tokens), left)
  local lines = { head }
  for _, item in ipairs(shown) do
    table.insert(lines, "> " .. M.item(item))
  end
  return lines
end

--- What a closed fold says in place of its lines.
---@param line string the first of them
---@param count integer how many there are
---@return string
function M.fold(line, count)
  local text = line:gsub("^> ?", "")
  return ("▸ %s (%s)"):format(text, many(count - 1, "line"))
end

--- The text of an answer, less what is put above it: its context, what the model thought.
---@param text string
---@return string
function M.own(text)
  for _, head in ipairs({ "> context: ", "> thinking\n" }) do
    if vim.startswith(text, head) then
      while vim.startswith(text, ">") do
        text = text:gsub("^[^\n]*\n?", "", 1)
      end
      text = text:gsub("^%s*\n", "")
    end
  end
  return text
end

--- What stands right of a heading.
---@param message lcursor.ChatMessage
---@return string
function M.badge(message)
  local parts = {}
  if message.branches > 1 then
    table.insert(parts, ("%d of %d"):format(message.branch, message.branches))
  end
  if message.is_partial then
    table.insert(parts, "not complete")
  end
  return table.concat(parts, ", ")
end

---@param seconds number
---@return string
local function span(seconds)
  if seconds >= 90 then
    return ("%.0f min"):format(seconds / 60)
  end
  return ("%.0f s"):format(math.ceil(seconds))
end

--- What a turn waits for, or how fast it goes.
---@param turn lcursor.ChatTurn
---@param now_ms integer
---@return string
function M.phase(turn, now_ms)
  local progress = turn.progress
  local waited = (now_ms - turn.started_ms) / 1000
  if turn.is_stopping then
    return "stopping"
  elseif turn.first_ms then
    local seconds = (now_ms - turn.first_ms) / 1000
    local tokens = turn.bytes / TOKEN_BYTES
    local speed = seconds > 0.5 and (", about %.0f tokens/s"):format(tokens / seconds) or ""
    return "writing" .. speed .. (turn.is_followed and ", then the next" or "")
  elseif not progress then
    return ("asked %s ago"):format(span(waited))
  end
  local detail = progress.detail ~= "" and (" " .. progress.detail) or ""
  if progress.phase == "server" then
    return "server:" .. (detail ~= "" and detail or " starting")
  elseif progress.phase == "context" then
    return "reading files" .. detail
  end
  local text = progress.phase == "summary" and "summarizing" or "reading"
  if progress.total > 0 then
    text = ("%s %d%%"):format(text, math.floor(100 * progress.done / progress.total))
    text = ("%s of %s"):format(text, M.short(progress.total))
  end
  if progress.seconds_left >= 0 then
    text = ("%s, %s left"):format(text, span(progress.seconds_left))
  end
  return text
end

---@alias lcursor.ChatPart { text: string, rank: integer, is_busy?: boolean }

--- What a winbar may say, in its order; of little room the lowest ranks go first.
---@param session lcursor.ChatSession
---@param now_ms integer
---@return lcursor.ChatPart[]
function M.bar(session, now_ms)
  local parts = {}
  local function add(rank, text, is_busy)
    table.insert(parts, { text = text, rank = rank, is_busy = is_busy })
  end
  if session.model ~= "" then
    add(5, session.model)
  end
  local used = M.short(session.used_tokens)
  if session.context_tokens > 0 then
    add(4, ("%s of %s"):format(used, M.size(session.context_tokens)))
  elseif session.used_tokens > 0 then
    add(4, used .. " tokens")
  end
  local last = session.last
  if session.turn and not session.turn.failure then
    add(9, M.phase(session.turn, now_ms), true)
  elseif session.turn or session.failure then
    add(9, "failed", true)
  elseif session.chat == "" then
    add(9, "opening", true)
  elseif last then
    if last.is_exact and last.prompt_tokens > 0 then
      add(3, ("%.0f%% cached"):format(100 * last.cached_tokens / last.prompt_tokens))
    end
    if last.answer_ms > 0 and last.answer_tokens > 1 then
      add(2, ("%.0f tokens/s"):format(1000 * last.answer_tokens / last.answer_ms))
    end
  end
  return parts
end

--- As much of it as there is room for; a title is cut before a part is left out.
---@param title string
---@param parts lcursor.ChatPart[]
---@param width integer
---@return string title
---@return lcursor.ChatPart[]
function M.fit(title, parts, width)
  local left = vim.list_slice(parts)
  local function taken()
    local cells = 2
    for _, part in ipairs(left) do
      cells = cells + vim.api.nvim_strwidth(part.text) + 3
    end
    return cells
  end
  local most = vim.api.nvim_strwidth(title)
  while #left > 0 and width - taken() < math.min(most, 12) do
    local lowest = 1
    for i, part in ipairs(left) do
      lowest = part.rank < left[lowest].rank and i or lowest
    end
    if #left == 1 then
      break
    end
    table.remove(left, lowest)
  end
  local room = math.max(width - taken(), 0)
  if most > room then
    title = room > 1 and vim.fn.strcharpart(title, 0, room - 1) .. "…" or ""
  end
  return title, left
end

return M
