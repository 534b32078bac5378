-- Several attempts at one task. Each is a run of its own; the hunks of the best one are shown in
-- the files, and those of the others are its alternatives. A list compares them.

local buffers = require("lcursor.editor.buffers")
local config = require("lcursor.config")
local keymaps = require("lcursor.editor.keymaps")
local list = require("lcursor.ui.list")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local short = require("lcursor.text").short

local M = {}

M.MAX = 8
local MAX_NAMES = 40
local MAX_FAILED = 60
local CHECK_MS = 500 -- several hunks may be accepted at once
local GROUPS = { passed = "LCursorAgentDone", failed = "LCursorAgentFailed" }
---@type table<string, string> turns of the attempts that were shown last, by group
local shown = {}
---@type table<string, string> turns of the runs whose hunks were loaded, by key
local turns = {}
---@type table<string, boolean> groups that are updated; whether once more
local updating = {}
---@type table<string, integer> numbers of attempts, by turn
local numbers = {}
---@type uv.uv_timer_t? until the tests run on hunks of several attempts
local timer

---@param group string
---@return lcursor.AgentRun[] of this Neovim, in order
function M.runs(group)
  local found = vim.tbl_filter(function(run)
    return run.group == group
  end, sessions.all("agent"))
  table.sort(found, function(one, other)
    return one.attempt < other.attempt
  end)
  return found
end

--- Return the name of an attempt, for lists and titles.
---@param number integer 0 for a run of its own
---@return string
function M.name(number)
  return number > 0 and ("#%d "):format(number) or ""
end

---@param row table fields of `AgentAttempt`
---@return boolean whether its hunks differ from those of better attempts
local function is_own(row)
  return row.turn ~= "" and row.same_as == 0
end

---@param row table fields of `AgentAttempt`
---@return lcursor.EditProposal?
local function proposal_of(row)
  return require("lcursor.edit.proposals").get(row.turn)
end

--- Return the proposal of a group that is shown.
---@param rows table[] fields of `AgentAttempt`
---@return lcursor.EditProposal?
local function visible(rows)
  return vim.iter(rows):map(proposal_of):find(function(proposal)
    return not proposal.is_hidden
  end)
end

--- Whether the user has accepted something of an attempt.
---@param proposal lcursor.EditProposal
local function is_accepted(proposal)
  return vim.iter(proposal.parts):any(function(part)
    return part.state == "done"
      or vim.iter(part.hunks):any(function(hunk)
        return hunk.state == "accepted"
      end)
  end)
end

--- Whether the user has accepted something of the attempts, or shows another one than was shown.
---@param group string
---@param rows table[] fields of `AgentAttempt`
local function has_chosen(group, rows)
  local now = visible(rows)
  return now ~= nil and now.key ~= shown[group] or vim.iter(rows):map(proposal_of):any(is_accepted)
end

--- Run the tests on the files as they are, and say which attempts they have hunks of.
---@param path string absolute
---@param names string[] of the attempts
local function check(path, names)
  local asked = { path = path, buffers = buffers.unsaved() }
  requests.ask("agent.check", asked, function(answer)
    local text = ("with hunks of %s the tests "):format(table.concat(names, " and "))
    if answer.tests == "passed" then
      notify.info(text .. "pass")
    elseif answer.tests == "failed" then
      notify.warn(text .. "fail: " .. short(answer.text, MAX_FAILED))
    else
      notify.info(text .. "were not run: " .. answer.text)
    end
  end)
end

--- Have the tests run if the user has accepted hunks of several attempts.
---@param decided lcursor.EditDecided
local function on_decided(decided)
  local proposals = require("lcursor.edit.proposals")
  local number, proposal = numbers[decided.turn], proposals.get(decided.turn)
  if not number or not proposal or #decided.accepted == 0 or config.get().edit.test == "" then
    return
  end
  local combined = vim.tbl_filter(is_accepted, proposals.alternatives(proposal))
  if #combined < 2 then
    return
  end
  local names = vim.tbl_map(function(each)
    return ("#%d"):format(numbers[each.key])
  end, combined)
  table.sort(names)
  timer = timer or assert(vim.uv.new_timer())
  timer:start(CHECK_MS, 0, function()
    vim.schedule(function()
      check(decided.path, names)
    end)
  end)
end

--- Describe the attempts, once all have ended.
---@param group string
---@param rows table[] fields of `AgentAttempt`
local function report(group, rows)
  local is_running = vim.iter(M.runs(group)):any(function(run)
    return run.id ~= nil
  end)
  if is_running then
    return
  end
  local passed = #vim.tbl_filter(function(row)
    return row.tests == "passed"
  end, rows)
  local words = { many(#rows, "attempt") }
  table.insert(words, passed > 0 and ("%d pass the tests"):format(passed) or nil)
  local now = visible(rows)
  local row = vim.iter(rows):find(function(each)
    return now ~= nil and each.turn == now.key
  end)
  table.insert(words, row and ("#%d is shown"):format(row.attempt) or "no change to show")
  local buf = vim.api.nvim_get_current_buf()
  local key = #vim.tbl_filter(is_own, rows) > 1 and keymaps.shown("hunk", "next_alternative", buf)
  local hint = key and ("%s shows the next one, "):format(key) or ""
  notify.info(table.concat(words, ", "), hint .. ":LCursor agent compare lists them")
end

--- Load the hunks of an attempt as one of the alternatives.
---@param row table fields of `AgentAttempt`
---@param done fun() called once they are here, or if there are none
local function load(group, path, row, done)
  local proposals = require("lcursor.edit.proposals")
  local old = turns[row.run]
  if old and old ~= row.turn then
    proposals.drop(old) -- the run was continued
  end
  turns[row.run] = row.turn
  if not next(numbers) then
    proposals.on_decided(on_decided)
  end
  numbers[row.turn] = row.attempt
  local asked = { turn = row.turn, path = path, buffers = buffers.loaded(row.paths) }
  local sent = requests.ask("edit.resume", asked, function(msg)
    if #msg.files > 0 then
      require("lcursor.edit").start()
      proposals.propose(msg, nil, group)
    end
    done()
  end, done)
  if not sent then
    done()
  end
end

--- Load the hunks of the attempts that have ended, and show those of the best one.
---@param group string
---@param path string absolute
function M.update(group, path)
  if updating[group] ~= nil then
    updating[group] = true -- once more, afterwards
    return
  end
  updating[group] = false
  ---@param rows? table[] fields of `AgentAttempt`
  local function finish(rows)
    local is_again = updating[group]
    updating[group] = nil
    if is_again then
      M.update(group, path)
    elseif rows then
      report(group, rows)
    end
  end
  local sent = requests.ask("agent.compare", { path = path, group = group }, function(answer)
    local rows, proposals = answer.attempts, require("lcursor.edit.proposals")
    local was_chosen = has_chosen(group, rows)
    local missing = vim.tbl_filter(function(row)
      return is_own(row) and not proposals.get(row.turn)
    end, rows)
    local function advance()
      local row = table.remove(missing, 1)
      if row then
        return load(group, path, row, advance)
      end
      local best = not was_chosen and vim.iter(rows):map(proposal_of):next()
      if best then
        shown[group] = best.key
        proposals.show(best)
      end
      finish(rows)
    end
    advance()
  end, function()
    finish()
  end)
  if not sent then
    updating[group] = nil
  end
end

---@param row table fields of `AgentAttempt`
---@return lcursor.Cells
local function cells_of(row)
  local proposal = proposal_of(row)
  local is_visible = proposal ~= nil and not proposal.is_hidden
  local tests = row.tests ~= "" and "tests " .. row.tests or ""
  local notes = {}
  if row.same_as > 0 then
    table.insert(notes, ("same as #%d"):format(row.same_as))
  elseif #row.only > 0 and #row.only < #row.names then
    table.insert(notes, "only here: " .. table.concat(row.only, ", "))
  end
  return {
    { is_visible and "* " or "  ", "LCursorChatTokens" },
    { M.name(row.attempt), "LCursorChatTitle" },
    { row.state .. "  ", row.state == "failed" and "LCursorAgentFailed" or "LCursorChatNote" },
    { tests .. "  ", GROUPS[row.tests] or "LCursorChatNote" },
    { row.turn ~= "" and ("+%d −%d  "):format(row.added, row.removed) or "", "LCursorChatNote" },
    { short(table.concat(row.names, ", "), MAX_NAMES) .. "  ", "LCursorHitFile" },
    { table.concat(notes, " · "), "LCursorChatNote" },
  }
end

--- Show the hunks of an attempt, and go to the first one.
---@param rows table[] fields of `AgentAttempt`
---@param row table
local function show(rows, row)
  local same = vim.iter(rows):find(function(other)
    return other.attempt == row.same_as
  end)
  local proposal = proposal_of(same or row)
  if not proposal then
    local words = row.turn == "" and "this attempt has changed nothing" or "it has no open hunks"
    return notify.info(words)
  end
  require("lcursor.edit.proposals").show(proposal)
  local part = proposal.parts[1]
  if part then
    require("lcursor.edit.hunks").go_to(part, part.hunks[1])
  end
end

--- List the attempts of a run's group.
---@param run? lcursor.AgentRun
function M.compare(run)
  if not run or run.group == "" then
    return notify.info("no attempts to compare; :LCursor agent start n=4 {task} makes four")
  end
  local rows = {}
  list.open({
    name = "attempts",
    cells = cells_of,
    head = function()
      return ("%s: %s"):format(many(#rows, "attempt"), short(run.task, MAX_NAMES))
    end,
    load = function(done)
      local asked = { path = run.path, group = run.group }
      requests.ask("agent.compare", asked, function(answer)
        rows = answer.attempts
        done(rows)
      end)
    end,
    empty = "no attempt has begun",
    keys = {
      {
        "<CR>",
        "hunks",
        function(row)
          show(rows, row)
        end,
        closes = true,
      },
      {
        "o",
        "open run",
        function(row)
          require("lcursor.agent.list").show(row.run, run.path, false)
        end,
        closes = true,
      },
      { "R", "refresh", list.load, on = "list" },
    },
  })
end

return M
