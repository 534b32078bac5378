-- Tasks that agents work on while nobody does: failing tests, diagnostics, comments with
-- `TODO(agent)`. The user sees them before the first one starts. One at a time, each on an idle
-- machine with mains power. Only changes with which the tests pass are listed, the smallest first.

local buffers = require("lcursor.editor.buffers")
local config = require("lcursor.config")
local diagnostics = require("lcursor.editor.diagnostics")
local follow = require("lcursor.agent.follow")
local list = require("lcursor.ui.list")
local many = require("lcursor.text").many
local models = require("lcursor.agent.models")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local short = require("lcursor.text").short

local M = {}

local api = vim.api
local MAX_TITLE = 60
local MAX_DIAGNOSTICS = 20

---@class (exact) lcursor.QueuedTask
---@field task string
---@field context string
---@field test string the failing test that it is about; "" for none

---@class (exact) lcursor.QueueResult
---@field task string
---@field done table fields of `agent.done`
---@field size integer lines

---@class (exact) lcursor.Queue
---@field path string absolute
---@field state "searching"|"ready"|"working"|"done"|"stopped"
---@field note string why there may be more tasks; "" for nothing
---@field tasks lcursor.QueuedTask[] that are left
---@field run? lcursor.AgentRun the one that works
---@field results lcursor.QueueResult[] the smallest first
---@field tried integer

---@type lcursor.Queue? that was opened last
local queue
---@type lcursor.List?
local shown

---@param own lcursor.Queue
---@return string
local function describe(own)
  if own.state == "searching" then
    return "looking for tasks"
  elseif own.state == "ready" then
    local note = own.note ~= "" and "; " .. own.note or ""
    return many(#own.tasks, "task") .. note
  end
  local words = { many(#own.results, "change") .. " with which the tests pass" }
  table.insert(words, ("%d tried"):format(own.tried))
  if own.run then
    local verb = own.run.state == "preparing" and "waits for an idle machine: " or "works on: "
    table.insert(words, verb .. short(own.run.task, MAX_TITLE))
  end
  table.insert(words, #own.tasks > 0 and ("%d left"):format(#own.tasks) or nil)
  table.insert(words, own.state == "stopped" and "stopped" or nil)
  return table.concat(words, ", ")
end

local function refresh()
  if shown and list.is_open(shown) then
    list.load(shown)
  end
end

---@param own lcursor.Queue
local function stop(own)
  local run = own.run
  own.state, own.run = "stopped", nil
  if run then
    follow.stop(run)
  end
  refresh()
end

---@param own lcursor.Queue
---@param task lcursor.QueuedTask
---@param done table fields of `agent.done`
---@param size integer
local function add_result(own, task, done, size)
  table.insert(own.results, { task = task.task, done = done, size = size })
  table.sort(own.results, function(one, other)
    return one.size < other.size
  end)
  local title = short(task.task, MAX_TITLE)
  notify.info("the tests pass: " .. title, ":LCursor agent queue lists the changes")
end

--- Start the next task.
---@param own lcursor.Queue
local function advance(own)
  local task = own.tasks[1]
  if not task then
    own.state = "done"
    notify.info("the queue is done: " .. describe(own), ":LCursor agent queue lists them")
    return refresh()
  end
  own.run = follow.start({
    task = task.task,
    path = own.path,
    context = task.context,
    policy = "",
    model = models.current(),
    test = task.test,
    when_idle = true,
    ended = function(done)
      local run = own.run
      if not run then
        return -- it was stopped
      elseif done.run == nil or done.run == "" or done.state == "stopped" then
        return stop(own) -- it never began, the host ended, or the user stopped it
      end
      own.run, own.tried = nil, own.tried + 1
      table.remove(own.tasks, 1)
      if done.is_checked and done.turn ~= "" then
        add_result(own, task, done, run.status and run.status.added + run.status.removed or 0)
      end
      advance(own)
    end,
  })
  if not own.run then
    stop(own)
  end
  refresh()
end

--- Return tasks for the errors and warnings of all buffers of a project, one for each line.
---@param root string
---@return lcursor.QueuedTask[]
local function problems(root)
  local tasks, seen = {}, {}
  local least = { severity = { min = vim.diagnostic.severity.WARN } }
  for _, each in ipairs(vim.diagnostic.get(nil, least)) do
    local key = ("%d:%d"):format(each.bufnr, each.lnum)
    local name = buffers.is_file(each.bufnr) and vim.fs.relpath(root, buffers.path(each.bufnr))
    if name and not seen[key] and #tasks < MAX_DIAGNOSTICS then
      seen[key] = true
      local context = api.nvim_buf_call(each.bufnr, function()
        return (diagnostics.problems({ each.lnum, each.lnum + 1 }))
      end)
      local text = ("Fix the problem at %s:%d"):format(name, each.lnum + 1)
      table.insert(tasks, { task = text, context = context or "", test = "" })
    end
  end
  return tasks
end

--- Look for tasks, in the place of those before.
local function search()
  if queue then
    stop(queue)
  end
  ---@type lcursor.Queue
  local own = {
    path = buffers.here(),
    state = "searching",
    note = "",
    tasks = {},
    results = {},
    tried = 0,
  }
  queue = own
  local function failed()
    own.state = "stopped"
    refresh()
  end
  local sent = requests.ask("agent.find", { path = own.path }, function(found)
    if own.state == "searching" then
      own.tasks = vim.list_extend(found.tasks, problems(found.root))
      own.state, own.note = "ready", found.note
      refresh()
    end
  end, failed)
  if not sent then
    failed()
  end
end

---@param item lcursor.QueuedTask|lcursor.QueueResult
---@return lcursor.Cells
local function cells_of(item)
  local names = item.done and vim.tbl_map(buffers.relative, item.done.paths) or {}
  return {
    { item.done and ("  %4d lines  "):format(item.size) or "  ", "LCursorChatTokens" },
    { short(item.task, MAX_TITLE) .. "  ", "LCursorChatTitle" },
    { table.concat(names, ", "), "LCursorHitFile" },
  }
end

--- Start with the first task, or show the hunks of a result.
---@param own lcursor.Queue
---@param item lcursor.QueuedTask|lcursor.QueueResult
local function press(own, item)
  if item.done then
    list.close(shown)
    local turn = { turn = item.done.turn, paths = item.done.paths }
    return require("lcursor.edit.edits").resume(turn, item.done.root)
  elseif own.state == "ready" then
    own.state = "working"
    advance(own)
  end
end

--- Look for tasks, or list what the queue has reached.
function M.open()
  if config.get().edit.test == "" then
    local hint = "set edit.test to the command that runs them"
    return notify.warn("the queue lists only changes with which the tests pass", hint)
  end
  if not queue or (queue.state ~= "working" and #queue.results == 0) then
    search()
  end
  shown = list.open({
    name = "queue",
    cells = cells_of,
    head = function()
      return describe(queue)
    end,
    load = function(done)
      done(vim.list_slice(queue.state == "ready" and queue.tasks or queue.results))
    end,
    empty = "nothing to list",
    keys = {
      {
        "<CR>",
        "start, or show hunks",
        function(item)
          press(queue, item)
        end,
      },
      {
        "x",
        "leave out",
        function(item)
          queue.tasks = vim.tbl_filter(function(task)
            return task ~= item
          end, queue.tasks)
          refresh()
        end,
      },
      {
        "s",
        "stop",
        function()
          stop(queue)
        end,
        on = "list",
      },
      {
        "n",
        "search again",
        function()
          search()
          refresh()
        end,
        on = "list",
      },
    },
  })
end

return M
