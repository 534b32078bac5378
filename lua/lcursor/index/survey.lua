-- `:LCursor index`: what indexing a project would read, asked before it begins, and what the index
-- holds when it has. Also `:LCursor index why PATH`. Computes lines; report.lua shows them.

local columns = require("lcursor.text").columns
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local states = require("lcursor.index.states")
local window = require("lcursor.ui.window")

local M = {}

local WATCHING =
  { watching = "seen at once", polling = "seen by looking at all files now and then" }

---@param bytes number
---@return string
local function size(bytes)
  for _, unit in ipairs({ "bytes", "KB", "MB" }) do
    if bytes < 1000 then
      return (unit == "bytes" and "%d %s" or "%.1f %s"):format(bytes, unit)
    end
    bytes = bytes / 1000
  end
  return ("%.1f GB"):format(bytes)
end

---@param number integer
---@return string with a comma at each thousand
local function grouped(number)
  local text = tostring(number):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

---@param seconds number
---@return string
local function duration(seconds)
  return seconds < 90 and ("%.0f s"):format(math.max(seconds, 1))
    or ("%.0f min"):format(seconds / 60)
end

--- How large what is indexed is, in one sentence.
---@param said lcursor.IndexReported
---@return string
local function summary(said)
  local text = ("%s files, %s"):format(grouped(said.files), size(said.bytes))
  if not said.is_begun and said.seconds >= 0 then
    text = text
      .. ("; about %s until all is found by words, %s more by meaning"):format(
        duration(said.seconds),
        duration(said.embed_seconds)
      )
  end
  return text
end

---@param rows lcursor.IndexRow[]
---@param head string[]
---@param cells fun(row: lcursor.IndexRow): string[]
---@return string[] lines
local function table_of(rows, head, cells)
  return columns(vim.list_extend({ head }, vim.tbl_map(cells, rows)))
end

---@param state lcursor.IndexState
---@return string[]
local function state_lines(state)
  local by_meaning = state.embedder ~= ""
      and ("%s of %s pieces, with %s"):format(
        grouped(state.embedded),
        grouped(state.chunks),
        state.embedder
      )
    or ("no: " .. (state.embedder_note ~= "" and state.embedder_note or "no embedder"))
  return {
    "state        " .. states.sentence(state),
    "by words     " .. ("%s pieces of %s files, %s definitions"):format(
      grouped(state.chunks),
      grouped(state.files),
      grouped(state.symbols)
    ),
    "by meaning   " .. by_meaning,
    "changes      " .. (WATCHING[state.watching] or "seen every few minutes"),
    "worker       " .. ("process %d, %s of memory"):format(state.pid, size(state.memory_bytes)),
    "",
  }
end

--- The report in lines.
---@param said lcursor.IndexReported
---@param state? lcursor.IndexState
---@return string[]
function M.lines(said, state)
  local lines = { summary(said), "" }
  if said.is_home then
    vim.list_extend(lines, { "This is a home directory, or above one: hardly a project.", "" })
  end
  if said.is_begun and state and states.is_alive(state) then
    vim.list_extend(lines, state_lines(state))
  end
  if #said.languages > 0 then
    vim.list_extend(
      lines,
      table_of(said.languages, { "language", "files", "size" }, function(row)
        return { row.name, grouped(row.files), size(row.bytes) }
      end)
    )
    table.insert(lines, "")
  end
  if #said.ignored > 0 then
    local rows = table_of(said.ignored, { "left out", "paths" }, function(row)
      return { row.name, row.files > 0 and grouped(row.files) or "" }
    end)
    for i, row in ipairs(said.ignored) do
      if #row.examples > 0 then
        local others = row.files > #row.examples and ", …" or ""
        rows[i + 1] = rows[i + 1] .. "  " .. table.concat(row.examples, ", ") .. others
      end
    end
    vim.list_extend(lines, rows)
    table.insert(lines, "")
  end
  return vim.list_extend(lines, {
    ":LCursor index why PATH says why a file is left out. More can be, in .lcursorignore.",
    "Nothing of it leaves this machine.",
  })
end

---@param said lcursor.IndexReported
---@return string
local function head(said)
  local keys = said.is_begun and "r anew, q close" or "b begin, q close"
  local name = vim.fn.fnamemodify(said.root, ":~")
  return ("%s: %s  (%s)"):format(name, said.is_begun and "indexed" or "not indexed", keys)
end

--- Index the project of a path from now on, and show how far it is.
---@param path string absolute
---@param opts? { rebuild?: boolean, is_confirmed?: boolean, root?: string }
function M.begin(path, opts)
  opts = opts or {}
  local state = states.of(path)
  local root = opts.root or (state and state.root)
  if root then
    states.await(root)
  else
    states.await_next()
  end
  requests.ask("index.begin", {
    path = path,
    is_confirmed = opts.is_confirmed or false,
    rebuild = opts.rebuild or false,
  })
end

---@param said lcursor.IndexReported
local function begin_from_report(said)
  local function go()
    vim.cmd.bwipeout()
    M.begin(said.root, { is_confirmed = said.is_home, root = said.root })
  end
  if not said.is_home then
    return go()
  end
  local prompt = ("Really index all of %s?"):format(said.root)
  vim.ui.select({ "No", "Yes, all of it" }, { prompt = prompt }, function(_, index)
    if index == 2 then
      go()
    end
  end)
end

--- Say what indexing the project of a path would read, and offer to begin.
---@param path string absolute
function M.show(path)
  notify.progress("looking which files there are ...")
  requests.ask("index.report", { path = path }, function(said)
    local buf = window.split("index", M.lines(said, states.of(said.root)), head(said))
    local function map(lhs, fn)
      vim.keymap.set("n", lhs, notify.guarded(fn), { buffer = buf, nowait = true })
    end
    if said.is_begun then
      map("r", function()
        vim.cmd.bwipeout()
        M.begin(said.root, { is_confirmed = said.is_home, rebuild = true, root = said.root })
      end)
    else
      map("b", function()
        begin_from_report(said)
      end)
    end
  end)
end

--- Say whether a file is indexed, and if not, why.
---@param path string
function M.why(path)
  requests.ask("index.why", { path = vim.fs.abspath(path) }, function(said)
    local name = vim.fs.basename(said.root) .. "/" .. said.path
    if said.reason == "" then
      notify.info(name .. " is indexed, or will be when its project is")
    else
      notify.info(("%s is not indexed: %s"):format(name, said.reason))
    end
  end)
end

return M
