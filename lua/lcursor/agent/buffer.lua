-- What the buffer of a run shows: the task, what the model writes, a folded line per step, the end,
-- and the draft.

local entries = require("lcursor.conversation.entries")
local format = require("lcursor.agent.format")
local keymaps = require("lcursor.editor.keymaps")
local transcript = require("lcursor.conversation.transcript")
local ui_notes = require("lcursor.ui.notes")

local M = {}

local api = vim.api
local HEADINGS = { draft = "## You", plan = "## Plan", form = "## Question" } -- the user edits them
local MAX_THOUGHT_LINES = 4 -- that are not folded

---@class (exact) lcursor.AgentEntry: lcursor.Entry
---@field kind "task"|"heading"|"thought"|"step"|"user"|"plan"|"form"|"end"|"draft"
---@field text? string of what the model or the user wrote
---@field context? string of the task
---@field note? string of the task: with what it is worked on
---@field step? table fields of `agent.step`
---@field ask? table fields of `agent.asks`, while that waits
---@field is_open? boolean of a plan or form: it waits for the user; of a thought: more may come
---@field lines? string[] of the end
---@field has_files? boolean of the end: it lists changes
---@field lead? integer number of blank lines before it

---@param text string
---@return string[]
local function split(text)
  return vim.split(vim.trim((text:gsub("\r\n", "\n"))), "\n", { plain = true })
end

--- Return the first line of an entry, after a blank one.
---@param entry lcursor.AgentEntry
---@return string?
function M.heading(entry)
  return HEADINGS[entry.kind]
end

---@return string[] lines
---@return integer? first line that is folded, from 0; to the last one
local function lines_of(entry)
  local kind = entry.kind
  if kind == "step" and entry.ask then
    return format.ask(entry.step, entry.ask)
  elseif kind == "step" then
    local lines = format.step(entry.step)
    return lines, #lines > 1 and 0 or nil
  elseif kind == "heading" then
    return { "", "## Agent", "" }
  elseif kind == "draft" then
    local lines = vim.split(entry.text, "\n", { plain = true })
    return vim.list_extend({ "", "## You", "" }, lines)
  elseif kind == "end" then
    return entry.lines or {}
  elseif kind == "plan" or kind == "form" then
    return vim.list_extend({ "", HEADINGS[kind], "" }, split(entry.text))
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

--- Return the lines of an entry and which of them are folded.
---@param entry lcursor.AgentEntry
---@param before? lcursor.AgentEntry
---@return string[]
---@return integer[][] folds first and last row, from 0
function M.body(entry, before)
  local lines, fold = lines_of(entry)
  local kinds = ("%s %s"):format(before and before.kind, entry.kind)
  entry.lead = vim.list_contains({ "step thought", "thought step" }, kinds) and 1 or 0
  if entry.lead > 0 then
    table.insert(lines, 1, "")
  end
  return lines, fold and { { fold + entry.lead, #lines - 1 } } or {}
end

--- Return the lines of an entry, without the blank one before it.
---@param run lcursor.AgentRun
---@param entry lcursor.AgentEntry
---@return string[]
function M.lines(run, entry)
  local first, last = entries.rows(run, entry)
  return api.nvim_buf_get_lines(run.buf, first + (entry.lead or 0), last, false)
end

--- Show what an entry is: the colours of a step, the keys of a question or of a plan.
---@param run lcursor.AgentRun
---@param entry lcursor.AgentEntry
---@param first integer row
---@param last integer row after it
function M.decorate(run, entry, first, last)
  local buf = run.buf
  local function hint(words, more)
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
      ui_notes.set(buf, entries.notes, last - 1, chunks, { virt_lines_above = false }, true)
    end
  end
  if entry.kind == "step" then
    for _, mark in ipairs(format.highlights(M.lines(run, entry)[1] or "")) do
      local opts = { end_col = mark[2], hl_group = mark[3], priority = 200 }
      api.nvim_buf_set_extmark(buf, entries.notes, first + entry.lead, mark[1], opts)
    end
  end
  if entry.kind == "step" and entry.ask then
    hint({
      { "approve", "once" },
      { "approve_run", entry.ask.is_bound and "until a file changes" or "for this run" },
      { "reject", "reject" },
      { "change", "change" },
    })
  elseif entry.kind == "plan" and entry.is_open then
    hint({ { "send", "approve, as edited" }, { "reject", "reject" } })
  elseif entry.kind == "form" and entry.is_open then
    hint({ { "send", "answer, as filled in" }, { "reject", "decline" } })
  elseif entry.has_files then
    local commands = ":LCursor hunk list  :LCursor hunk accept all"
    hint({ { "jump", "go to the file" } }, commands)
  end
end

--- Return the entry above the draft.
---@param run lcursor.AgentRun
---@return lcursor.AgentEntry?
local function last_of(run)
  return run.entries[#run.entries - 1]
end

--- Return the entries of a run that wait for the user.
---@param run lcursor.AgentRun
---@return lcursor.AgentEntry[]
function M.waiting(run)
  return vim.tbl_filter(function(entry)
    local is_text = entry.kind == "plan" or entry.kind == "form"
    return entry.ask ~= nil or (is_text and entry.is_open == true)
  end, run.entries)
end

--- Add an entry above the draft, below a heading if the one before it is not the model's.
---@param run lcursor.AgentRun
---@param entry table fields of lcursor.AgentEntry
---@return lcursor.AgentEntry
function M.add(run, entry)
  M.end_thought(run)
  local last = last_of(run)
  local is_models = entry.kind == "thought" or entry.kind == "step"
  local kinds = { "step", "thought", "heading" }
  if is_models and last and not vim.list_contains(kinds, last.kind) then
    M.add(run, { kind = "heading" })
  end
  entry.text = entry.text or ""
  return entries.insert(run, entry)
end

--- Add to what the model writes.
---@param run lcursor.AgentRun
---@param text string
---@param is_new boolean
function M.think(run, text, is_new)
  local entry = last_of(run)
  if is_new or not entry or entry.kind ~= "thought" or not entry.is_open then
    text = text:gsub("^%s+", "")
    if text == "" then
      return
    end
    entry = M.add(run, { kind = "thought", is_open = true })
    if entry.mark ~= 0 then
      local _, last = entries.rows(run, entry)
      entry.stream = entries.stream(run, entry, last - 1)
    end
  end
  entry.text = entry.text .. text
  if entry.stream and entries.is_loaded(run) then
    transcript.add(entry.stream, (text:gsub("\r\n", "\n")))
  end
end

--- End what the model writes; a long text is folded.
---@param run lcursor.AgentRun
function M.end_thought(run)
  local entry = last_of(run)
  if entry and entry.kind == "thought" and entry.is_open then
    if entry.stream then
      entry.stream.pending = "" -- the whole entry is written
    end
    entry.is_open, entry.stream = false, nil
    entry.text = format.thought(entry.text, run.dialect)
    if entry.text == "" or entry.text == run.thought then
      return entries.remove(run, entry)
    end
    run.thought = entry.text -- small models repeat theirs with each step
    entries.show(run, entry)
  end
end

return M
