-- The Markdown buffer of a run: the task, what the model writes, a folded line per step, a draft at
-- the end. An extmark at each entry says where it begins; it ends where the next one begins. The
-- entries are complete, so that a buffer that was deleted can be written again.

local format = require("lcursor.agent.format")
local highlights = require("lcursor.ui.highlights")
local keymaps = require("lcursor.editor.keymaps")
local notify = require("lcursor.ui.notify")
local transcript = require("lcursor.ui.transcript")
local ui_notes = require("lcursor.ui.notes")

local M = {}

local api = vim.api
local marks = api.nvim_create_namespace("lcursor.agent")
local colours = api.nvim_create_namespace("lcursor.agent.colours")
local notes = api.nvim_create_namespace("lcursor.agent.notes")
local RETRY_MS = 40
local MAX_THOUGHT_LINES = 4 -- that are not folded

---@class (exact) lcursor.AgentEntry
---@field kind "task"|"heading"|"thought"|"step"|"user"|"plan"|"end"
---@field mark integer extmark where it begins; 0 if it is not written
---@field text string of what the model or the user wrote
---@field context? string of the task
---@field note? string of the task: with what it is worked on
---@field step? table fields of `agent.step`
---@field ask? table fields of `agent.asks`, while that waits
---@field is_open? boolean of a plan: it waits for approval; of a thought: more may come
---@field lines? string[] of the end
---@field has_files? boolean of the end: it lists changes
---@field lead? integer number of blank lines before it
---@field is_late? boolean it must be written
---@field stream? lcursor.TextStream

---@param text string
---@return string[]
local function split(text)
  return vim.split(vim.trim((text:gsub("\r\n", "\n"))), "\n", { plain = true })
end

---@return string[] lines
---@return integer? first line that is folded, from 0; to the last one
local function body_of(entry)
  local kind = entry.kind
  if kind == "step" and entry.ask then
    return format.ask(entry.step, entry.ask)
  elseif kind == "step" then
    local lines = format.step(entry.step)
    return lines, #lines > 1 and 0 or nil
  elseif kind == "heading" then
    return { "", "## Agent", "" }
  elseif kind == "end" then
    return entry.lines or {}
  elseif kind == "plan" then
    return vim.list_extend({ "", "## Plan", "" }, split(entry.text))
  elseif kind == "user" then
    return vim.list_extend({ "", "## You", "" }, split(entry.text))
  elseif kind == "thought" then
    local lines = split(entry.text)
    return lines, not entry.is_open and #lines > MAX_THOUGHT_LINES and 0 or nil
  end
  local lines = vim.list_extend({ "## Task", "" }, split(entry.text))
  if entry.note then
    vim.list_extend(lines, { "", "> " .. entry.note })
  end
  if not entry.context or entry.context == "" then
    return lines
  end
  table.insert(lines, "")
  local first = #lines
  for i, line in ipairs(split(entry.context)) do
    table.insert(lines, (i == 1 and "> context: " or "> ") .. line)
  end
  return lines, first
end

---@param run lcursor.AgentRun
---@return boolean
function M.is_loaded(run)
  return run.buf ~= nil and api.nvim_buf_is_loaded(run.buf)
end

---@return integer? row
local function row_of(run, mark)
  return mark ~= 0 and api.nvim_buf_get_extmark_by_id(run.buf, marks, mark, {})[1] or nil
end

--- Return the row where the draft begins, with the blank line before its heading.
---@return integer
local function draft_row(run)
  return row_of(run, run.draft) or api.nvim_buf_line_count(run.buf)
end

--- Return the rows of an entry.
---@param run lcursor.AgentRun
---@param entry lcursor.AgentEntry
---@return integer first
---@return integer last the one after it
function M.rows(run, entry)
  local last
  for i = #run.entries, 1, -1 do
    local other = run.entries[i]
    if other == entry then
      break
    end
    last = row_of(run, other.mark) or last
  end
  last = last or draft_row(run)
  return math.min(row_of(run, entry.mark) or last, last), last
end

--- Return the entry at a row.
---@param run lcursor.AgentRun
---@param row integer
---@return lcursor.AgentEntry? nil in the draft
function M.entry_at(run, row)
  local mark = api.nvim_buf_get_extmarks(run.buf, marks, { row, -1 }, 0, { limit = 1 })[1]
  return vim.iter(mark and run.entries or {}):find(function(entry)
    return entry.mark == mark[1]
  end)
end

--- Return the lines of an entry, without the blank one before it.
---@param run lcursor.AgentRun
---@param entry lcursor.AgentEntry
---@return string[]
function M.lines(run, entry)
  local first, last = M.rows(run, entry)
  return api.nvim_buf_get_lines(run.buf, first + (entry.lead or 0), last, false)
end

local function change(run, fn)
  transcript.without_undo(run.buf, fn)
end

--- Show what an entry is: the colours of a step, the keys of a question or of a plan.
local function annotate(run, entry)
  local buf, first, last = run.buf, M.rows(run, entry)
  api.nvim_buf_clear_namespace(buf, colours, first, last)
  api.nvim_buf_clear_namespace(buf, notes, first, last)
  local function hint(row, words, more)
    local chunks = {}
    for _, word in ipairs(words) do
      local lhs = keymaps.shown("agent", word[1], buf)
      if lhs then
        table.insert(chunks, { (#chunks > 0 and "  " or "") .. lhs, "LCursorEditKey" })
        table.insert(chunks, { " " .. word[2], "LCursorChatNote" })
      end
    end
    if more then
      table.insert(chunks, { "  " .. more, "LCursorEditKey" })
    end
    if #chunks > 0 then
      ui_notes.set(buf, notes, row, chunks, { virt_lines_above = false }, true)
    end
  end
  if entry.kind == "step" then
    for _, mark in ipairs(format.highlights(M.lines(run, entry)[1] or "")) do
      local opts = { end_col = mark[2], hl_group = mark[3], priority = 200 }
      api.nvim_buf_set_extmark(buf, colours, first + entry.lead, mark[1], opts)
    end
  end
  if entry.kind == "step" and entry.ask then
    hint(last - 1, {
      { "approve", "once" },
      { "approve_run", entry.ask.is_bound and "until a file changes" or "for this run" },
      { "reject", "reject" },
      { "change", "change" },
    })
  elseif entry.kind == "plan" and entry.is_open then
    hint(last - 1, { { "send", "approve, as edited" }, { "reject", "reject" } })
  elseif entry.has_files then
    local commands = ":LCursor hunk list  :LCursor hunk accept all"
    hint(last - 1, { { "jump", "go to the file" } }, commands)
  end
end

--- Replace the lines of an entry, or insert it before the draft.
---@param previous? lcursor.AgentEntry
local function put(run, entry, previous)
  local first, last = M.rows(run, entry)
  local is_new = entry.mark == 0
  local lines, fold = body_of(entry)
  local kinds = ("%s %s"):format(previous and previous.kind, entry.kind)
  entry.lead, entry.is_late = 0, false
  if vim.list_contains({ "step thought", "thought step" }, kinds) then
    entry.lead = 1
    table.insert(lines, 1, "")
  end
  if not is_new then
    api.nvim_buf_clear_namespace(run.buf, colours, first, last)
    api.nvim_buf_clear_namespace(run.buf, notes, first, last)
    transcript.unfold(run.buf, first, math.max(last, first + 1))
  end
  change(run, function(buf)
    api.nvim_buf_set_lines(buf, first, last, false, lines)
    local id = not is_new and entry.mark or nil
    entry.mark = api.nvim_buf_set_extmark(buf, marks, first, 0, { id = id })
  end)
  if fold then
    transcript.fold(run.buf, first + entry.lead + fold, first + #lines - 1)
  end
  annotate(run, entry)
  transcript.show_end(run.buf)
end

--- Write the entries that changed; later while a completion menu is open, which that would close.
---@param run lcursor.AgentRun
function M.update(run)
  if not M.is_loaded(run) then
    return
  elseif not transcript.is_completing(run.buf) then
    for i, entry in ipairs(run.entries) do
      if entry.is_late then
        put(run, entry, run.entries[i - 1])
      end
    end
  elseif not run.is_waiting then
    run.is_waiting = true
    notify.later(RETRY_MS, function()
      run.is_waiting = false
      M.update(run)
    end)
  end
end

--- Write an entry that changed.
---@param run lcursor.AgentRun
---@param entry lcursor.AgentEntry
function M.show(run, entry)
  entry.is_late = true
  M.update(run)
end

--- Remove the last entry.
local function drop(run, entry)
  table.remove(run.entries)
  if M.is_loaded(run) and entry.mark ~= 0 then
    local first = row_of(run, entry.mark) or draft_row(run)
    change(run, function(buf)
      api.nvim_buf_set_lines(buf, first, draft_row(run), false, {})
    end)
    api.nvim_buf_del_extmark(run.buf, marks, entry.mark)
  end
end

--- Add an entry at the end, below a heading if the one before it is not the model's.
---@param run lcursor.AgentRun
---@param entry table fields of lcursor.AgentEntry
---@return lcursor.AgentEntry
function M.add(run, entry)
  M.end_thought(run)
  local last = run.entries[#run.entries]
  local is_models = entry.kind == "thought" or entry.kind == "step"
  local kinds = { "step", "thought", "heading" }
  if is_models and last and not vim.list_contains(kinds, last.kind) then
    M.add(run, { kind = "heading" })
  end
  entry.mark, entry.text = 0, entry.text or ""
  table.insert(run.entries, entry)
  M.show(run, entry)
  return entry
end

--- Add to what the model writes.
---@param run lcursor.AgentRun
---@param text string
---@param is_new boolean
function M.think(run, text, is_new)
  local entry = run.entries[#run.entries]
  if is_new or not entry or entry.kind ~= "thought" or not entry.is_open then
    text = text:gsub("^%s+", "")
    if text == "" then
      return
    end
    entry = M.add(run, { kind = "thought", is_open = true })
    if entry.mark ~= 0 then
      local _, last = M.rows(run, entry)
      entry.stream = transcript.stream(run.buf, last - 1, function(fn)
        local first = M.rows(run, entry)
        change(run, fn)
        -- It moved to the end of what was inserted there.
        api.nvim_buf_set_extmark(run.buf, marks, first, 0, { id = entry.mark })
      end)
    end
  end
  entry.text = entry.text .. text
  if entry.stream and M.is_loaded(run) then
    transcript.add(entry.stream, (text:gsub("\r\n", "\n")))
  end
end

--- End what the model writes; a long text is folded.
---@param run lcursor.AgentRun
function M.end_thought(run)
  local entry = run.entries[#run.entries]
  if entry and entry.kind == "thought" and entry.is_open then
    if entry.stream then
      entry.stream.pending = "" -- the whole entry is written
    end
    entry.is_open, entry.stream = false, nil
    entry.text = format.thought(entry.text, run.dialect)
    if entry.text == "" or entry.text == run.thought then
      return drop(run, entry)
    end
    run.thought = entry.text -- small models repeat theirs with each step
    M.show(run, entry)
  end
end

--- Return the draft.
---@param run lcursor.AgentRun
---@return string
function M.draft(run)
  local lines = api.nvim_buf_get_lines(run.buf, draft_row(run), -1, false)
  for i = 1, math.min(#lines, 2) do
    if lines[i] == "## You" then
      lines = vim.list_slice(lines, i + 1)
      break
    end
  end
  return vim.trim(table.concat(lines, "\n"))
end

--- Replace the draft.
---@param run lcursor.AgentRun
---@param text string
function M.set_draft(run, text)
  change(run, function(buf)
    local row = draft_row(run)
    local lines = vim.list_extend({ "", "## You", "" }, vim.split(text, "\n", { plain = true }))
    api.nvim_buf_set_lines(buf, row, -1, false, lines)
    run.draft = api.nvim_buf_set_extmark(buf, marks, row, 0, { id = run.draft })
  end)
end

--- Write everything again.
---@param run lcursor.AgentRun
---@param draft string
function M.render(run, draft)
  transcript.unfold(run.buf)
  for _, namespace in ipairs({ marks, colours, notes }) do
    api.nvim_buf_clear_namespace(run.buf, namespace, 0, -1)
  end
  for _, entry in ipairs(run.entries) do
    entry.mark, entry.stream, entry.is_late = 0, nil, true
  end
  run.draft = api.nvim_buf_set_extmark(run.buf, marks, 0, 0, {})
  M.set_draft(run, draft) -- replaces all lines
  M.update(run)
end

--- Lay out the notes again, for another width.
---@param run lcursor.AgentRun
function M.annotate(run)
  for _, entry in ipairs(run.entries) do
    if entry.ask or entry.is_open or entry.has_files then
      annotate(run, entry)
    end
  end
end

--- 'foldtext'.
---@return lcursor.Chunk[]
function M.foldtext()
  local line = vim.fn.getline(vim.v.foldstart)
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  return format.fold(line, vim.v.foldend - vim.v.foldstart + 1, info.width - info.textoff)
end

--- Create the buffer of a run.
---@param run lcursor.AgentRun
function M.create(run)
  highlights.apply()
  run.buf = transcript.create("agent/" .. run.number)
  M.set_filetype(run.buf)
end

---@param buf integer
function M.set_filetype(buf)
  transcript.set_filetype(buf, "lcursor_agent")
end

return M
