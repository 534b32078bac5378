-- `:LCursor tutor`: a practice file of real code with seven lessons, in a folder of its own. A
-- lesson is marked as done when an event or the state of the editor shows it.

local highlights = require("lcursor.ui.highlights")
local keymaps = require("lcursor.editor.keymaps")
local notify = require("lcursor.ui.notify")
local rpc = require("lcursor.host.rpc")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.tutor")

-- {group.action} stands for the user's key. Lines have at most 58 columns.
local PRACTICE = [[
# lcursor tutor: seven short lessons in a file of its own.
# Change anything you like; nothing else is touched.
#
# A lesson that you have done is marked. No ghost text?
# `:LCursor why` explains it, `:LCursor` shows what is
# missing. `:tabclose` ends the tutor.


# LESSON 1: SUGGESTIONS
#
# Go to the line with only a `c`, press A, and wait for
# ghost text: the first takes longest, as the model is
# loaded. Type its first letters: it stays while you type
# what it says. Then:
#
#   {suggestion.accept_word}  accept a word
#   {suggestion.accept}  accept the rest

def count_even(numbers):
    count = 0
    for number in numbers:
        if number % 2 == 0:
            c
    return count

# Do the same at the end of the next function, and
# dismiss what you see:
#
#   {suggestion.dismiss}  dismiss the suggestion

def full_name(first, last):
    return first + " " + l


# LESSON 2: NEXT EDITS
#
# Go to `amount` in the line `def with_tax`, and type
# cwnet<Esc>. The next use of the name is drawn in its
# line, with the old name struck out:
#
#   {next_edit.accept}  apply it, and see the next one
#   {next_edit.accept_all}  show all as hunks; {hunk.accept_all} accepts
#
# (One far away is a hint at the end of your line; the
# first key then only goes there.) Now go to `rate` in
# the first line, type cwshare<Esc>, and:
#
#   {next_edit.dismiss}  dismiss what you see

def with_tax(amount, rate):
    if amount < 0:
        return 0.0
    tax = amount * rate
    if rate > 0.1:
        print(f"{amount} + {tax}")
    return round(amount + tax, 2)


# LESSON 3: EDITS
#
# Go to `def cheapest`, select both functions with V12j,
# and type
#
#   :'<,'>LCEdit add type hints to both functions
#
# The result appears as hunks. Accept one and reject
# another:
#
#   {hunk.accept}  accept the hunk
#   {hunk.next}  go to the next one
#   {hunk.reject}  reject it

def cheapest(products):
    best = products[0]
    for product in products:
        if product.price < best.price:
            best = product
    return best


def total_weight(products):
    weight = 0.0
    for product in products:
        weight += product.weight_kg * product.quantity
    return round(weight, 3)


# LESSON 4: UNDO AN EDIT
#
#   :LCursor edit undo
#
# undoes the last edit in all its files, also after a
# restart; what you typed since stays. `u` works, too.


# LESSON 5: ASK ABOUT A FUNCTION
#
# Select the function with V, and type
#
#   :'<,'>LCChat when does this fail?
#
# The answer appears in a split. Ask more below the last
# heading: {chat.send} sends, {chat.help} shows all keys.

def average_order(orders):
    total = sum(order.amount for order in orders)
    return total / len(orders)


# LESSON 6: SEARCH BY MEANING
#
# The folder of this file has two more, customers.py and
# delivery.py. Index them:
#
#   :LCursor index start
#
# and search for words that occur in neither:
#
#   :LCursor search who may pay less
#
# Results are in the quickfix list; <CR> goes to one.
# Without words, you search while you type.


# LESSON 7: HELP
#
#   :LCursor        what is set up, and keys to know
#   :LCursor why    why there is ghost text, or none
#   :LCursor agent  an agent that works on a task
#   :help lcursor   everything
#
# `:LCursor` and a space, then <Tab>, lists all commands.
]]

local CUSTOMERS = [[
def loyalty_discount(customer, today):
    """Return the share of the price that a loyal customer saves."""
    years = (today - customer.joined).days // 365
    return 0.1 if years >= 3 else 0.0


def greeting(customer):
    return f"Dear {customer.name},"
]]

local DELIVERY = [[
def parcels(weight_kg, max_kg=20.0):
    """Return how many parcels an order needs."""
    return max(1, -(-int(weight_kg) // int(max_kg)))


def arrival(shipped, distance_km):
    """Return the day on which an order arrives."""
    return shipped + 1 + distance_km // 400
]]

---@class (exact) lcursor.Lesson
---@field mark integer extmark of its heading
---@field is_done boolean

---@type table<integer, lcursor.Lesson> by number
local lessons = {}
---@type integer? the practice buffer
local practice
---@type table<string, boolean> parts of lessons 1 to 3 that were done
local done = {}
local is_watching = false

--- Replace each {group.action} by the user's key, padded to a column.
---@return string[]
local function lines_for(buf)
  local found = {}
  for line in vim.gsplit(vim.trim(PRACTICE) .. "\n", "\n") do
    local replaced = line:gsub("{([%w_]+)%.([%w_]+)}", function(group, action)
      return keymaps.shown(group, action, buf) or "-"
    end)
    local lhs, rest = replaced:match("^#   (%S+)  (%l.*)$")
    if lhs and replaced ~= line then
      replaced = ("#   %-12s%s"):format(lhs, rest)
    end
    table.insert(found, replaced)
  end
  return found
end

---@param number integer
local function mark(number)
  local lesson = lessons[number]
  if not lesson or lesson.is_done or not practice or not api.nvim_buf_is_valid(practice) then
    return
  end
  lesson.is_done = true
  local at = api.nvim_buf_get_extmark_by_id(practice, namespace, lesson.mark, {})
  api.nvim_buf_set_extmark(practice, namespace, at[1], 0, {
    id = lesson.mark,
    virt_text = { { "✓ done", "LCursorStartReady" } },
  })
end

--- Note a part of a lesson, and mark the lesson once all of its parts are done.
---@param number integer
---@param all string[]
local function note(number, part, all)
  done[part] = true
  if vim.iter(all):all(function(each)
    return done[each]
  end) then
    mark(number)
  end
end

--- Mark lessons when events and the state of the editor show that they are done.
local function watch()
  if is_watching then
    return
  end
  is_watching = true
  local on = notify.autocmds("tutor")
  ---@param number integer of a lesson
  ---@param events string[] all of them, in the practice file
  local function watch_events(number, events)
    for _, name in ipairs(events) do
      on("User", function(event)
        if event.data.buf == practice then
          note(number, name, events)
        end
      end, { pattern = name })
    end
  end
  watch_events(1, { "LCursorCompletionAccept", "LCursorCompletionDismiss" })
  watch_events(2, { "LCursorNextEditAccept", "LCursorNextEditDismiss" })
  on("User", function()
    mark(5)
  end, { pattern = "LCursorChatDone" })
  on({ "BufWinEnter", "WinEnter" }, function()
    if vim.fn.getqflist({ title = true }).title:find("^:LCursor search") then
      mark(6)
    end
  end)
  require("lcursor.edit.proposals").on_decided(function(decided)
    local parts = { "accepted", "rejected" }
    if decided.is_undone then
      return mark(4)
    end
    if #decided.accepted > 0 then
      note(3, "accepted", parts)
    end
    if #decided.rejected > 0 then
      note(3, "rejected", parts)
    end
  end)
  rpc.on("edit.reverted", function(params)
    if params["do"] == "undo" and params.turn ~= "" then
      mark(4)
    end
  end)
end

--- Write the practice file after each change, so that Neovim can be quit without a question.
local function save_always()
  api.nvim_create_autocmd({ "InsertLeave", "TextChanged" }, {
    buffer = practice,
    callback = notify.guarded(function()
      vim.cmd("silent! noautocmd write!")
    end),
  })
end

--- Return a private folder, outside of all projects of the user, that no other Neovim uses.
local function own_folder()
  local base = vim.fs.joinpath(vim.fn.stdpath("run") --[[@as string]], "lcursor-tutor")
  local folder, number = base, 1
  while true do
    vim.fn.mkdir(folder, "p", "0700")
    local lock = vim.fs.joinpath(folder, ".pid")
    local pid = vim.fn.filereadable(lock) == 1 and tonumber(vim.fn.readfile(lock, "", 1)[1]) or nil
    if not pid or pid == vim.fn.getpid() or vim.uv.kill(pid, 0) ~= 0 then
      vim.fn.writefile({ tostring(vim.fn.getpid()) }, lock)
      return folder
    end
    number = number + 1
    folder = ("%s-%d"):format(base, number)
  end
end

--- Write the files of the tutor.
---@return string path of the practice file
local function write()
  local folder = own_folder()
  local files = { ["customers.py"] = CUSTOMERS, ["delivery.py"] = DELIVERY }
  files["pyproject.toml"] = "" -- marks the root of a project
  -- Otherwise a search would find the query in its own lesson.
  files[".lcursorignore"] = "practice.py\n.lcursorignore\n.pid"
  for name, content in pairs(files) do
    vim.fn.writefile(vim.split(content, "\n"), vim.fs.joinpath(folder, name))
  end
  local path = vim.fs.joinpath(folder, "practice.py")
  vim.fn.writefile(lines_for(api.nvim_get_current_buf()), path)
  return path
end

--- Run `:LCursor tutor`: start from the beginning, in a tab page of its own.
function M.open()
  highlights.apply()
  if practice and api.nvim_buf_is_valid(practice) then
    api.nvim_buf_delete(practice, { force = true })
  end
  watch()
  lessons, done = {}, {}
  vim.cmd.tabedit({ vim.fn.fnameescape(write()), mods = { noswapfile = true } })
  practice = api.nvim_get_current_buf()
  save_always()
  for row, line in ipairs(api.nvim_buf_get_lines(practice, 0, -1, false)) do
    if line:find("^# LESSON ") then
      local id = api.nvim_buf_set_extmark(practice, namespace, row - 1, 0, {})
      table.insert(lessons, { mark = id, is_done = false })
    end
  end
end

return M
