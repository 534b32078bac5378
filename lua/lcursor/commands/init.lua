-- `:LCursor`: finds a command, checks its arguments, completes the command line, describes all.
-- A noun is a file in commands/ with its verbs; commands without one are in commands/general.lua.

local notify = require("lcursor.ui.notify")

local M = {}

local api = vim.api

---@class (exact) lcursor.CommandCall
---@field args string[] after the name
---@field text string the arguments as one text
---@field range? integer[] first and last line, from 1

---@class (exact) lcursor.Verb
---@field [1] string name, and an argument in brackets if any text may follow: "export [file]"
---@field [2] string text for the help
---@field [3] fun(call: lcursor.CommandCall)
---@field args? string[][] words that may follow, and their texts
---@field complete? "file"|fun(lead: string, rest: string): string[] the words for its argument;
---`rest` is what stands between the name and the cursor

---@class (exact) lcursor.Noun
---@field text string for the help
---@field default? string verb that is run without one
---@field is_free? boolean any other text is the argument of the default verb
---@field is_enabled? fun(): boolean whether its verbs may run now; reports why not
---@field verbs lcursor.Verb[]

-- Each is a file in commands/; in the order of the help.
local NOUNS = { "suggestion", "hunk", "edit", "chat", "agent", "mcp", "index", "server" }

---@param name? string
---@return lcursor.Noun?
local function noun_of(name)
  return vim.list_contains(NOUNS, name) and require("lcursor.commands." .. name) or nil
end

---@return lcursor.Verb[]
local function general()
  return require("lcursor.commands.general").verbs
end

---@param verb lcursor.Verb
local function name_of(verb)
  return verb[1]:match("^%S+")
end

---@param rows lcursor.Verb[]|string[][]
---@return string[]
local function names(rows)
  return vim.tbl_map(name_of, rows)
end

---@param words string[] of the command line, after `:LCursor`
---@return lcursor.Verb?
---@return lcursor.Noun?
---@return integer how many of the words name them
local function find(words)
  local noun = noun_of(words[1])
  local at = noun and 2 or 1
  local name = words[at] or noun and noun.default
  for _, verb in ipairs(noun and noun.verbs or general()) do
    local is_text = noun and noun.is_free and #words > at and not verb[1]:find("[", 1, true)
    if name_of(verb) == name and not is_text then
      return verb, noun, math.min(at, #words)
    end
  end
  if noun and noun.is_free and #words > 1 then
    return find({ words[1] })
  end
  return nil, noun, math.min(at, #words)
end

---@return string[]
local function words_of(text)
  return vim.split(text, "%s+", { trimempty = true })
end

--- Split what follows `:LCursor` at the first `|`, unless the command takes any text: then the `|`
--- belongs to it.
---@return string command
---@return string? rest the next Ex command
local function split(text)
  local command, rest = text:match("^(.-)|(.*)$")
  local verb = command and find(words_of(command))
  if command and (not command:find("%S") or verb and not verb[1]:find("[", 1, true)) then
    return command, rest
  end
  return text, nil
end

--- Return the tag of a command in the help if `--help` is its only argument.
---@param words string[]
---@return string?
local function help_tag(words)
  local before, last = vim.list_slice(words, 1, #words - 1), words[#words]
  local is_asked = (last == "--help" or last == "-h") and select(3, find(before)) == #before
  return is_asked and table.concat({ ":LCursor", before[1] }, "-") or nil
end

---@param words string[] after `:LCursor`
---@param opts vim.api.keyset.create_user_command.command_args
local function run(words, opts)
  words = #words > 0 and words or { "start" }
  local tag = help_tag(words)
  if tag then
    return require("lcursor.ui.window").help(tag)
  end
  local verb, noun, count = find(words)
  local name = table.concat(words, " ", 1, count)
  if not verb and noun and #words == 1 then
    local text = ":LCursor %s needs one of %s"
    return notify.warn(text:format(name, table.concat(names(noun.verbs), ", ")))
  elseif not verb then
    local known = noun and names(noun.verbs) or vim.list_extend(names(general()), NOUNS)
    local text = "there is no :LCursor %s. Use one of %s"
    return notify.warn(text:format(name, table.concat(known, ", ")))
  end
  local args, known = vim.list_slice(words, count + 1), names(verb.args or {})
  local is_known = #args == 0 or #args == 1 and vim.list_contains(known, args[1])
  is_known = is_known or verb[1]:find("[", 1, true) ~= nil
  if not is_known then
    local expected = #known > 0 and table.concat(known, ", ") or "none"
    local text = "invalid argument %s for :LCursor %s (expected: %s)"
    return notify.warn(text:format(args[#args], name, expected))
  end
  if not noun or not noun.is_enabled or noun.is_enabled() then
    local range = opts.range > 0 and { opts.line1, opts.line2 } or nil
    verb[3]({ args = args, text = table.concat(args, " "), range = range })
  end
end

--- Run `:LCursor`, and the command after a `|`.
---@param opts vim.api.keyset.create_user_command.command_args
function M.run(opts)
  local command, rest = split(opts.args)
  run(rest and words_of(command) or opts.fargs, opts)
  local ok, err = pcall(vim.cmd, rest or "")
  if not ok then
    api.nvim_echo({ { (tostring(err):gsub("^.-(E%d+: )", "%1")) } }, true, { err = true })
  end
end

--- `:LCEdit`; with a bang, an agent plans a change of the project.
---@param opts vim.api.keyset.create_user_command.command_args
function M.edit(opts)
  if not opts.bang or opts.args == "--help" then
    return require("lcursor.edit.lcedit").command(opts)
  end
  require("lcursor").edit({
    instruction = opts.args ~= "" and opts.args or nil,
    range = opts.range > 0 and { opts.line1, opts.line2 } or nil,
    project = true,
  })
end

--- Complete the command line.
---@param lead string the part of the word before the cursor
---@param pos integer bytes before the cursor
---@return string[]
function M.complete(lead, line, pos)
  local before = line:sub(1, pos - #lead):match("%f[%a]LCu[rso]*%s+(.*)$") or ""
  local _, rest = split(before)
  if rest then
    return vim.fn.getcompletion(rest .. lead, "cmdline")
  end
  local words = words_of(before)
  local verb, noun, count = find(words)
  local known
  if #words == 0 then
    known = vim.list_extend(vim.list_slice(NOUNS), names(general()))
  elseif noun and #words == 1 then
    known = names(noun.verbs)
  elseif not verb then
    return {}
  elseif type(verb.complete) == "function" then
    return verb.complete(lead, (before:gsub("^" .. ("%S+%s+"):rep(count), "")))
  elseif #words > count then
    return {}
  elseif verb.complete == "file" then
    return vim.fn.getcompletion(lead, "file")
  else
    known = names(verb.args or {})
  end
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, known)
end

--- Run the action of a <Plug> map.
---@return string? what to type, for an <expr> map
function M.press(plug)
  local keys = require("lcursor.config.keys")
  for _, group in pairs(keys.groups) do
    for _, key in ipairs(group.keys) do
      if keys.plug(group, key) == plug then
        local press = require("lcursor." .. group.module).press
        return require("lcursor.editor.keymaps").call(press, key[1])
      end
    end
  end
end

---@class (exact) lcursor.CommandHelp
---@field name string
---@field form string with its arguments
---@field text string
---@field args string[][] and their texts

--- Describe the commands for the help: those without a noun, then a row for each noun.
---@return lcursor.CommandHelp[]
function M.describe()
  local rows = {} ---@type lcursor.CommandHelp[]
  for _, verb in ipairs(general()) do
    local name = ":LCursor " .. name_of(verb)
    local row = { name = name, form = ":LCursor " .. verb[1], text = verb[2] }
    row.args = verb.args or {}
    table.insert(rows, row)
  end
  for _, name in ipairs(NOUNS) do
    local noun, args = assert(noun_of(name)), {}
    for _, verb in ipairs(noun.verbs) do
      table.insert(args, { verb[1], verb[2] })
      for _, arg in ipairs(verb.args or {}) do
        table.insert(args, { name_of(verb) .. " " .. arg[1], arg[2] })
      end
    end
    local form = noun.default and ":LCursor %s [verb]" or ":LCursor %s {verb}"
    local text = noun.default and ("%s Without a verb: `%s`."):format(noun.text, noun.default)
    local row = { name = ":LCursor " .. name, form = form:format(name), text = text or noun.text }
    row.args = args
    table.insert(rows, row)
  end
  return rows
end

return M
