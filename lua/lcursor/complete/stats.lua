-- `:LCursor stats`: the acceptance statistics that the host keeps.

local buffers = require("lcursor.editor.buffers")
local requests = require("lcursor.host.requests")
local rpc = require("lcursor.host.rpc")
local text = require("lcursor.text")
local window = require("lcursor.ui.window")

local M = {}

---@param share number of 1; below 0 is unknown
local function percent(share)
  return share >= 0 and ("%.0f %%"):format(share * 100) or "-"
end

---@param ms number below 0 is unknown
local function milliseconds(ms)
  return ms >= 0 and ("%.0f ms"):format(ms) or "-"
end

---@param number number
local function decimal(number)
  return ("%.2f"):format(number)
end

---@alias lcursor.StatsColumn { [1]: string, [2]: string, [3]: fun(value: any): string }

---@type lcursor.StatsColumn[][] title, field, format; a table each where one would be too wide
local TABLES = {
  {
    { "shown", "shown", tostring },
    { "accepted", "accept_share", percent },
    { "rejected", "rejected", tostring },
    { "ignored", "ignored", tostring },
  },
  {
    { "whole", "accepted", tostring },
    { "partly", "partial", tostring },
    { "typed", "typed", tostring },
    { "threshold", "threshold", decimal },
  },
  {
    { "p50", "p50_ms", milliseconds },
    { "p95", "p95_ms", milliseconds },
    { "cached", "cache_share", percent },
    { "ahead", "speculation_share", percent },
    { "through", "through_share", percent },
  },
}

local LEGEND = {
  "accepted   in whole or in part, or typed to the end; share of all that were not ignored",
  "rejected   other text was typed, or it was dismissed, within 10 s",
  "ignored    neither; suggestions shown for less than 250 ms do not count",
  "p50, p95   from the key to the ghost",
  "cached     answered from the cache;  ahead: generated before the request",
  "through    share of keys that typed what was suggested, without a new request",
  "threshold  confidence below which nothing is shown; adapts to what you accept and reject",
}

---@param stats lcursor.StatsMessage
---@param columns lcursor.StatsColumn[]
---@return string[] lines
local function rows_of(stats, columns)
  local rows = { { "filetype" } }
  for _, column in ipairs(columns) do
    table.insert(rows[1], column[1])
  end
  local function add(row, name)
    local cells = { name }
    for _, column in ipairs(columns) do
      table.insert(cells, column[3](row[column[2]]))
    end
    table.insert(rows, cells)
  end
  for _, row in ipairs(stats.rows) do
    add(row, row.filetype ~= "" and row.filetype or "(none)")
  end
  add(stats.total, "all")
  return text.columns(rows)
end

--- The report in lines.
---@param stats lcursor.StatsMessage
---@return string[]
function M.lines(stats)
  local lines = {}
  if stats.problem ~= "" then
    vim.list_extend(lines, { stats.problem, "" })
  end
  if stats.total.shown == 0 then
    vim.list_extend(lines, { "No suggestion was shown yet, or the statistics were cleared.", "" })
  else
    local all = vim.iter(TABLES):flatten(1):totable()
    local has_room = #rows_of(stats, all)[1] <= vim.o.columns
    for _, columns in ipairs(has_room and { all } or TABLES) do
      vim.list_extend(lines, rows_of(stats, columns))
      table.insert(lines, "")
    end
    vim.list_extend(lines, LEGEND)
    vim.list_extend(lines, { "" })
  end
  if #stats.next_edits > 0 then
    local rows = { { "next edits", "accepted", "rejected" } }
    for _, row in ipairs(stats.next_edits) do
      table.insert(rows, { row.kind, tostring(row.accepted), tostring(row.rejected) })
    end
    vim.list_extend(lines, text.columns(rows))
    vim.list_extend(lines, { "" })
  end
  return vim.list_extend(lines, {
    "Kept in " .. stats.path,
    "It contains no text and no file names, and is never sent. Entries expire after 180 days.",
    ":LCursor stats reset clears it; so does deleting the file.",
  })
end

---@param stats lcursor.StatsMessage
local function head(stats)
  local since = stats.since_s > 0 and os.date(" since %Y-%m-%d", stats.since_s) or ""
  return ("Suggestions shown%s: %d"):format(since, stats.total.shown)
end

function M.show()
  requests.send("stats.request")
end

--- Clear the statistics, and show them.
function M.reset()
  requests.send("stats.reset")
end

rpc.on("stats", function(params)
  buffers.when_normal("the report", function()
    window.split("stats", M.lines(params), head(params))
  end)
end)

return M
