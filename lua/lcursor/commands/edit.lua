-- `:LCursor edit`.

--- Return a command that calls a function of a module in edit/.
---@param argument? string
---@return fun()
local function call(module, name, argument)
  return function()
    require("lcursor.edit." .. module)[name](argument)
  end
end

local function ask(command)
  require("lcursor.edit.lcedit").run({ instruction = command.text, range = command.range })
end

local function plan(command)
  local text = command.text ~= "" and command.text or nil
  require("lcursor").edit({ instruction = text, range = command.range, project = true })
end

local function fix(command)
  local range = command.range
  require("lcursor.edit.ask").fix(range and { range[1] - 1, range[2] } or nil)
end

local function apply(command)
  require("lcursor.edit.apply_code").register(command.args[1])
end

local function stop()
  if require("lcursor.edit").stop() == 0 then
    require("lcursor.ui.notify").info("no edit runs")
  end
end

--- Return the registers that have a text, without the clipboard: reading it starts a program.
---@param lead string
---@return string[]
local function registers(lead)
  return vim
    .iter(('"0123456789abcdefghijklmnopqrstuvwxyz'):gmatch("."))
    :filter(function(register)
      return vim.startswith(register, lead) and vim.fn.getreg(register) ~= ""
    end)
    :totable()
end

---@param lead string
---@param rest string
---@return string[]
local function mentions(lead, rest)
  return require("lcursor.editor.mentions").complete(lead, "LCEdit " .. rest .. lead)
end

-- stylua: ignore
---@type lcursor.Noun
return {
  text = "Changes of your code.",
  default = "ask",
  is_enabled = function()
    return require("lcursor.edit").is_on()
  end,
  verbs = {
    { "ask [text]", "Request an edit, the same as |:LCEdit|.", ask, complete = mentions },
    { "plan [text]", "Let an agent plan a change of the project, the same as `:LCEdit!`.", plan,
      complete = mentions },
    { "fix", "Fix the diagnostics of the current line, or of a range.", fix },
    { "apply [register]", "Turn yanked code, a diff or a whole answer into hunks.", apply,
      complete = registers },
    { "undo", "Undo the last accepted edit in all its files; later changes are kept.",
      call("edits", "revert", "undo") },
    { "redo", "Redo the edit that was undone last.", call("edits", "revert", "redo") },
    { "list", "List the edits of the project, to undo, redo or resume one.",
      call("edits", "list") },
    { "stop", "Stop the edits that are being written in this buffer, or else all.", stop },
  },
}
