-- `:LCursor suggestion prompt`: the tokens of the last request. The buffer's text is the prompt
-- itself; token borders, ids and which tokens were cached are highlights and virtual text.

local highlights = require("lcursor.ui.highlights")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local rpc = require("lcursor.rpc")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api
local always = api.nvim_create_namespace("lcursor.prompt")
local borders = api.nvim_create_namespace("lcursor.prompt.borders")
local numbers = api.nvim_create_namespace("lcursor.prompt.numbers")

---@class (exact) lcursor.Span position of a token; 0-based, end-exclusive
---@field piece lcursor.PromptPiece
---@field row integer
---@field col integer
---@field end_row integer
---@field end_col integer

--- Return the prompt in lines, and the position of each token.
---@param pieces lcursor.PromptPiece[]
---@return string[] lines
---@return lcursor.Span[]
function M.layout(pieces)
  local done, open, spans = {}, {}, {}
  local col = 0
  for _, piece in ipairs(pieces) do
    local span = { piece = piece, row = #done, col = col }
    for i, part in ipairs(vim.split(piece.text, "\n", { plain = true })) do
      if i > 1 then
        table.insert(done, table.concat(open))
        open, col = {}, 0
      end
      part = part:gsub("%z", "\n") -- as a buffer has a NUL
      table.insert(open, part)
      col = col + #part
    end
    span.end_row, span.end_col = #done, col
    table.insert(spans, span)
  end
  table.insert(done, table.concat(open))
  return done, spans
end

--- Count the tokens.
---@param pieces lcursor.PromptPiece[]
---@return string
function M.count(pieces)
  local cached, markers = 0, 0
  for _, piece in ipairs(pieces) do
    cached = cached + (piece.is_cached and 1 or 0)
    markers = markers + (piece.kind == "marker" and 1 or 0)
  end
  return ("%d tokens: %d cached, %d evaluated; %d special"):format(
    #pieces,
    cached,
    #pieces - cached,
    markers
  )
end

---@param span lcursor.Span
---@param priority? integer
local function paint(buf, namespace, span, group, priority)
  api.nvim_buf_set_extmark(buf, namespace, span.row, span.col, {
    end_row = span.end_row,
    end_col = span.end_col,
    hl_group = group,
    priority = priority or 100,
  })
end

---@param draw fun()
local function toggle(buf, namespace, draw)
  if #api.nvim_buf_get_extmarks(buf, namespace, 0, -1, { limit = 1 }) > 0 then
    return api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
  draw()
end

---@param spans lcursor.Span[]
local function decorate(buf, spans)
  for _, namespace in ipairs({ always, borders, numbers }) do
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
  for _, span in ipairs(spans) do
    if not span.piece.is_cached then
      paint(buf, always, span, "LCursorTokenRead")
    end
    if span.piece.kind == "marker" then
      paint(buf, always, span, "LCursorTokenMarker", 110)
    end
  end
  local function map(lhs, fn)
    vim.keymap.set("n", lhs, fn, { buffer = buf, nowait = true })
  end
  map("t", function()
    toggle(buf, borders, function()
      for i = 1, #spans, 2 do
        paint(buf, borders, spans[i], "LCursorTokenBorder", 90)
      end
    end)
  end)
  map("i", function()
    toggle(buf, numbers, function()
      for _, span in ipairs(spans) do
        local format = span.piece.is_cached and "[%d]" or "[+%d]"
        api.nvim_buf_set_extmark(buf, numbers, span.row, span.col, {
          virt_text = { { format:format(span.piece.id), "LCursorTokenId" } },
          virt_text_pos = "inline",
        })
      end
    end)
  end)
end

function M.show()
  requests.send("prompt.request")
end

rpc.on("prompt", function(params)
  if #params.pieces == 0 then
    return notify.info("there was no request yet")
  end
  highlights.apply()
  local lines, spans = M.layout(params.pieces)
  local keys = "t borders, i ids (+ evaluated), q close"
  decorate(window.split("prompt", lines, M.count(params.pieces), keys), spans)
end)

return M
