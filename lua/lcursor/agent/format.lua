-- Formats what the buffer of a run shows: steps, questions, the end. Pure.

local many = require("lcursor.text").many
local numbers = require("lcursor.text.numbers")
local printable = require("lcursor.text").printable
local short = require("lcursor.text").short
local tail = require("lcursor.text").tail

local M = {}

local SEPARATOR = " · "
local MAX_TARGET = 200 -- characters of a line that is not a question
local SIGNS = { running = "•", waiting = "?", done = "✓", failed = "✗", rejected = "✗" }
local SIGN_GROUPS = {
  ["•"] = "LCursorAgentBusy",
  ["?"] = "LCursorAgentAsks",
  ["✓"] = "LCursorAgentDone",
  ["✗"] = "LCursorAgentFailed",
}
local ACTIONS = { "bash", "view", "search", "edit", "finish" } -- of the fenced dialect
local ENDS = { done = "Done", stuck = "Stuck", failed = "Failed", stopped = "Stopped" }
local FILE_KINDS = { create = "new", delete = "deleted", rename = "renamed" }
local ELSEWHERE = "Runs in another Neovim"

---@param step table fields of `agent.step`
---@return string
function M.step_line(step)
  local head = ("%s %s %s"):format(SIGNS[step.state], step.kind, short(step.target, MAX_TARGET))
  local words = { vim.trim(head) }
  local result = step.state == "rejected" and step.result == "" and "rejected" or step.result
  for _, more in ipairs({
    result,
    step.seconds >= 0.05 and numbers.duration(step.seconds, true) or "",
  }) do
    if more ~= "" then
      table.insert(words, (more:gsub("%s+", " ")))
    end
  end
  return table.concat(words, SEPARATOR)
end

--- Return what a model wrote before its call, which is shown as a step.
---@param text string
---@param dialect string
---@return string
function M.thought(text, dialect)
  text = vim.trim((text:gsub("\r\n", "\n")))
  if dialect == "choice" then
    return vim.trim((text:gsub("\n.*", ""):gsub("^# ?", "")))
  end
  local at = text:find("<tool_call>", 1, true) or text:find("<function=", 1, true)
  text = at and text:sub(1, at - 1) or text
  for _, action in ipairs(dialect == "fenced" and ACTIONS or {}) do
    text = ("\n" .. text):gsub("\n```" .. action .. "[ \n].*$", "")
  end
  return vim.trim(text)
end

--- Put a text into a fenced block that it cannot end.
---@param text string
---@param language string
---@return string[]
function M.fence(text, language)
  local longest = 2
  for run in text:gmatch("`+") do
    longest = math.max(longest, #run)
  end
  local fence = ("`"):rep(longest + 1)
  local lines = vim.split(text:gsub("\r\n", "\n"):gsub("%s+$", ""), "\n", { plain = true })
  table.insert(lines, 1, fence .. language)
  table.insert(lines, fence)
  return lines
end

--- Format a step: a line, and below it what the model read.
---@param step table fields of `agent.step`
---@return string[]
function M.step(step)
  local lines = { M.step_line(step) }
  if step.text:find("%S") then
    vim.list_extend(lines, M.fence(step.text, "text"))
  end
  return lines
end

--- Format a question about a step: its command, and why it is asked.
---@param step table fields of `agent.step`
---@param ask table fields of `agent.asks`
---@return string[]
function M.ask(step, ask)
  local lines = { ("? %s%swaits for approval"):format(step.kind, SEPARATOR) }
  vim.list_extend(lines, M.fence(ask.command, "bash"))
  table.insert(lines, (ask.why:gsub("%s+", " ")))
  return lines
end

--- Return the command in a question, as the user has changed it.
---@param lines string[]
---@return string? nil if the block is damaged
function M.command(lines)
  local fence = lines[2] and lines[2]:match("^(```+)bash$")
  for i = 3, fence and #lines or 0 do
    if lines[i] == fence then
      return table.concat(lines, "\n", 3, i - 1)
    end
  end
end

--- Return the highlighted parts of a step's line.
---@param line string
---@return lcursor.Chunk[]
local function chunks_of(line)
  local sign, kind, rest = line:match("^(%S+) (%S+)(.*)$")
  local group = SIGN_GROUPS[sign or ""]
  if not group then
    return { { line, "Folded" } }
  end
  local target, more = rest, ""
  local at = rest:find(SEPARATOR, 1, true)
  if at then
    target, more = rest:sub(1, at - 1), rest:sub(at)
  end
  local is_failed = sign == "✗"
  return {
    { sign .. " ", group },
    { kind, "LCursorAgentKind" },
    { target, "Normal" },
    { more, is_failed and group or "LCursorChatNote" },
  }
end

--- Return where the highlights of a step's line are.
---@param line string
---@return { [1]: integer, [2]: integer, [3]: string }[] columns and groups
function M.highlights(line)
  local found, col = {}, 0
  for _, chunk in ipairs(chunks_of(line)) do
    table.insert(found, { col, col + #chunk[1], chunk[2] })
    col = col + #chunk[1]
  end
  return #found > 1 and found or {}
end

--- Format a closed fold. Where it is too narrow, what comes last is left out, then the target is
--- shortened.
---@param line string the first of its lines
---@param count integer of lines
---@param width integer cells
---@return lcursor.Chunk[]
function M.fold(line, count, width)
  local is_step = SIGN_GROUPS[line:match("^%S+") or ""] ~= nil
  if not is_step then
    line = "▸ " .. line:gsub("^> ?", "")
    local more = (" (%s)"):format(many(count - 1, "line"))
    line = vim.fn.strdisplaywidth(line .. more) <= width and line .. more or short(line, width)
  end
  while vim.fn.strdisplaywidth(line) > width and line:find(SEPARATOR, 1, true) do
    line = line:gsub("^(.*)" .. SEPARATOR .. ".*$", "%1")
  end
  local head, path = line:match("^(%S+ %S+ )(.*)$")
  if is_step and line:find("^%S+ [re]%a+ ") and vim.fn.strdisplaywidth(line) > width then
    line = head .. tail(path, width - vim.fn.strdisplaywidth(head)) -- its end names the file
  end
  return chunks_of(vim.fn.strdisplaywidth(line) > width and short(line, width) or line)
end

--- Format the end of a run.
---@param done table fields of `agent.done`
---@param facts string[] of its status
---@param tests string
---@return string[]
function M.done(done, facts, tests)
  local is_over = ENDS[done.state] ~= nil
  local lines = { "", "## " .. (ENDS[done.state] or ELSEWHERE), "" }
  if done.message:find("%S") then
    vim.list_extend(lines, vim.split(vim.trim(done.message), "\n", { plain = true }))
    table.insert(lines, "")
  end
  if not is_over then
    return lines
  end
  local words = { tests }
  if #done.paths > 0 then
    table.insert(words, many(#done.paths, "file"))
  elseif done.turn == "" then
    table.insert(words, "no changes")
  end
  table.insert(lines, table.concat(vim.list_extend(words, facts), SEPARATOR))
  return lines
end

--- Format the files with changes, and which of them only the user may accept.
---@param files lcursor.EditFile[]
---@return string[]
function M.files(files)
  local lines = { "" }
  for _, file in ipairs(files) do
    local words = { FILE_KINDS[file.kind] }
    table.insert(words, file.is_guarded and "runs code by itself: accept it on its own" or nil)
    local more = #words > 0 and (" (%s)"):format(table.concat(words, "; ")) or ""
    table.insert(lines, ("- %s%s"):format(printable(file.name), more))
  end
  return lines
end

return M
