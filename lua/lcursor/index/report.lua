-- `:LCursor index`: what indexing a project would read, before it is started, and what the index
-- holds afterwards.

local buffers = require("lcursor.editor.buffers")
local columns = require("lcursor.text").columns
local notify = require("lcursor.ui.notify")
local numbers = require("lcursor.text.numbers")
local requests = require("lcursor.host.requests")
local states = require("lcursor.index.states")
local window = require("lcursor.ui.window")

local M = {}

---@return string[]
local function state_lines(state)
  local semantic = "no: " .. (state.embedder_note ~= "" and state.embedder_note or "no embedder")
  if state.embedder ~= "" then
    local embedded, chunks = numbers.grouped(state.embedded), numbers.grouped(state.chunks)
    semantic = ("%s of %s chunks, with %s"):format(embedded, chunks, state.embedder)
  end
  local watching = { watching = "noticed at once", polling = "found by polling" }
  return {
    "state        " .. states.sentence(state),
    "full text    " .. ("%s chunks of %s files, %s definitions"):format(
      numbers.grouped(state.chunks),
      numbers.grouped(state.files),
      numbers.grouped(state.symbols)
    ),
    "semantic     " .. semantic,
    "changes      " .. (watching[state.watching] or "found every few minutes"),
    "worker       " .. ("process %d%s"):format(state.pid, states.memory(state)),
    "",
  }
end

--- Return the lines of the report.
---@param reported lcursor.IndexReported
---@param state? lcursor.IndexState
---@return string[]
function M.lines(reported, state)
  local summary = ("%s files, %s"):format(
    numbers.grouped(reported.files),
    numbers.bytes(reported.bytes)
  )
  if not reported.is_begun and reported.seconds >= 0 then
    local format = "%s; about %s to full-text search, %s more to semantic search"
    local text = numbers.duration(reported.seconds)
    local embed = numbers.duration(reported.embed_seconds)
    summary = format:format(summary, text, embed)
  end
  local lines = { summary, "" }
  if reported.is_home then
    local text = "This is your home directory or contains it, so it is hardly a project."
    vim.list_extend(lines, { text, "" })
  end
  if reported.is_begun and state and states.is_alive(state) then
    vim.list_extend(lines, state_lines(state))
  end
  local languages, ignored = { { "language", "files", "size" } }, { { "left out", "paths" } }
  for _, row in ipairs(reported.languages) do
    table.insert(languages, { row.name, numbers.grouped(row.files), numbers.bytes(row.bytes) })
  end
  for _, row in ipairs(reported.ignored) do
    table.insert(ignored, { row.name, row.files > 0 and numbers.grouped(row.files) or "" })
  end
  if #languages > 1 then
    vim.list_extend(lines, columns(languages))
    table.insert(lines, "")
  end
  if #ignored > 1 then
    local rows = columns(ignored)
    for i, row in ipairs(reported.ignored) do
      if #row.examples > 0 then
        local more = row.files > #row.examples and ", …" or ""
        rows[i + 1] = rows[i + 1] .. "  " .. table.concat(row.examples, ", ") .. more
      end
    end
    vim.list_extend(lines, rows)
    table.insert(lines, "")
  end
  return vim.list_extend(lines, {
    ":LCursor index why {path} explains why a file is left out.",
    "A file .lcursorignore leaves out more.",
    "Nothing leaves this machine. Typing pauses the indexing.",
  })
end

--- Index the project of a path from now on, and show its progress.
---@param path string absolute
---@param opts? { rebuild?: boolean, is_confirmed?: boolean, root?: string }
function M.start(path, opts)
  opts = opts or {}
  local state = states.of(path)
  states.await(opts.root or (state and state.root))
  requests.ask("index.begin", {
    path = path,
    is_confirmed = opts.is_confirmed or false,
    rebuild = opts.rebuild or false,
  })
end

---@param reported table fields of `IndexReported`
local function show(reported)
  local root, is_begun = reported.root, reported.is_begun
  local keys = is_begun and "r rebuild, q close" or "s start, q close"
  local name, what = vim.fn.fnamemodify(root, ":~"), is_begun and "indexed" or "not indexed"
  local lines = M.lines(reported, states.of(root))
  local buf = window.split("index", lines, ("%s: %s"):format(name, what), keys)
  local function start()
    vim.cmd.bwipeout()
    M.start(root, { is_confirmed = reported.is_home, rebuild = is_begun, root = root })
  end
  local function ask()
    if reported.is_home and not is_begun then
      window.confirm(("Really index all of %s?"):format(root), start)
    else
      start()
    end
  end
  local lhs = is_begun and "r" or "s"
  vim.keymap.set("n", lhs, notify.guarded(ask), { buffer = buf, nowait = true })
end

--- Report what indexing the project of a path would read, and offer to start.
---@param path string absolute
function M.show(path)
  notify.progress("scanning files …")
  requests.ask("index.report", { path = path }, function(reported)
    buffers.when_normal("the report", function()
      show(reported)
    end)
  end)
end

--- Explain why a file is not indexed.
function M.why(path)
  requests.ask("index.why", { path = vim.fs.abspath(path) }, function(explained)
    local name = vim.fs.basename(explained.root) .. "/" .. explained.path
    if explained.reason == "" then
      notify.info(name .. " is indexed, or will be once its project is")
    else
      notify.info(("%s is not indexed: %s"):format(name, explained.reason))
    end
  end)
end

return M
