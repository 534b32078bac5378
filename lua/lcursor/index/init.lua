-- The index of a project, as the editor shows it: puts the files of this folder together. The work
-- is done in a process of its own, which the Python half starts.

local buffers = require("lcursor.index.buffers")
local context = require("lcursor.context")
local host = require("lcursor.host")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local search = require("lcursor.index.search")
local states = require("lcursor.index.states")
local survey = require("lcursor.index.survey")

local M = {}

local started = false
---@type integer? process that was told what is open
local greeted

local function hear_host()
  local pid = host.info().pid
  if pid == greeted then
    return
  end
  greeted = pid
  states.clear()
  if pid then
    vim.schedule(notify.guarded(buffers.greet))
  end
end

--- Begin to tell an index that there is what goes on here. Starts nothing.
function M.start()
  if started then
    return
  end
  started = true
  buffers.start()
  vim.api.nvim_create_autocmd("User", {
    group = vim.api.nvim_create_augroup("lcursor.index.host", {}),
    pattern = "LCursorHostState",
    callback = notify.guarded(hear_host),
  })
  hear_host()
end

---@return boolean whether the index may be used; tells where not
local function is_on()
  local may_be = requests.is_enabled("index", "the index is")
  if may_be then
    M.start()
  end
  return may_be
end

--- `:LCursor index {words}`.
---@param args string[]
function M.command(args)
  if not is_on() then
    return
  end
  local word, here = args[1], context.here()
  if word == nil then
    survey.show(here)
  elseif word == "why" then
    local path = table.concat(vim.list_slice(args, 2), " ")
    survey.why(path ~= "" and path or here)
  elseif word == "begin" or word == "rebuild" then
    survey.begin(here, { rebuild = word == "rebuild" })
  else
    notify.warn((":LCursor index knows why PATH, begin and rebuild, not %s"):format(word))
  end
end

--- `:LCursor search {text}`.
---@param text? string words, or @ and the beginning of a name; nothing opens the picker
function M.search(text)
  if is_on() then
    search.run(text or "")
  end
end

---@return string? one sentence about the index of the project that one is in; nil where none is
function M.describe()
  local state = states.of(context.here())
  return state and states.sentence(state)
end

---@return lcursor.IndexState[] the indexes of this session
function M.states()
  return states.all()
end

return M
