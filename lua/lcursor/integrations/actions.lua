-- Code actions: "Fix", "Explain" and "Add tests with lcursor", in buffers where another language
-- server or a linter is at work. They call the commands of edits and of the chat.

local config = require("lcursor.config")
local notify = require("lcursor.ui.notify")
local server = require("lcursor.ui.lsp_server")

local M = {}

local api = vim.api
local COMMAND = "lcursor.action"
local TRIGGERS = vim.lsp.protocol.CodeActionTriggerKind
local NAME = "lcursor"

---@class (exact) lcursor.Action
---@field title string
---@field kind string an lsp.CodeActionKind
---@field run fun(rows: integer[], is_selection: boolean) in the window of the code

--- Return the rows of the function around the cursor.
---@return integer[]? first row, and the one after the last; nil where treesitter knows none
local function function_rows()
  local ok, node = pcall(vim.treesitter.get_node)
  node = ok and node or nil
  while node and not node:type():find("function") and not node:type():find("method") do
    node = node:parent()
  end
  if node then
    local first, _, last, last_col = node:range()
    return { first, last_col > 0 and last + 1 or last }
  end
end

--- Return a function that asks about the selection, the function around the cursor, or the file.
local function ask(question)
  return function(rows, is_selection)
    local about = is_selection and rows or function_rows()
    require("lcursor").chat({
      question = question,
      range = about and { about[1] + 1, about[2] },
      selection = false,
    })
  end
end

---@type table<string, lcursor.Action>
local ACTIONS = {
  fix = {
    title = "Fix with lcursor",
    kind = "quickfix",
    run = function(rows, is_selection)
      if require("lcursor.edit").is_on() then
        require("lcursor.edit.ask").fix(is_selection and rows or nil)
      end
    end,
  },
  agent = {
    title = "Fix with an agent of lcursor",
    kind = "lcursor.agent",
    run = function(rows, is_selection)
      local agent = require("lcursor.agent")
      if agent.is_on() then
        agent.fix("", is_selection and rows or nil)
      end
    end,
  },
  explain = {
    title = "Explain with lcursor",
    kind = "lcursor.explain",
    run = ask("/explain"),
  },
  tests = {
    title = "Add tests with lcursor",
    kind = "lcursor.tests",
    run = ask("/tests"),
  },
}

---@param wanted? string[] kinds; nil: all
local function is_wanted(wanted, kind)
  return not wanted
    or vim.iter(wanted):any(function(each)
      return kind == each or vim.startswith(kind, each .. ".")
    end)
end

---@param range lsp.Range
---@return integer[] first row, and the one after the last
---@return boolean whether text is selected
local function rows_of(range)
  local first, last = range.start.line, range["end"].line
  local is_selection = not vim.deep_equal(range.start, range["end"])
  local ends_before = last > first and range["end"].character == 0
  return { first, ends_before and last or last + 1 }, is_selection
end

--- Return the actions for some code, in the order of the menu. Plugins that show a light bulb ask
--- at each line, and most do not say so: they get actions only for a diagnostic or a selection.
---@param params lsp.CodeActionParams
---@return lsp.CodeAction[]
local function actions_for(buf, params)
  local trigger = params.context.triggerKind
  local is_off = not config.for_buffer(buf).enabled or trigger == TRIGGERS.Automatic
  if is_off or require("lcursor.editor.privacy").private_reason(buf) then
    return {}
  end
  local rows, is_selection = rows_of(params.range)
  local names = { "explain", "tests" }
  local found = require("lcursor.editor.diagnostics").at(buf, rows[1], rows[2], 0)
  if #found > 0 then
    names = { "fix", "agent", "explain", "tests" }
  elseif trigger ~= TRIGGERS.Invoked and not is_selection then
    return {}
  end
  local actions = {}
  for _, name in ipairs(names) do
    local action = ACTIONS[name]
    if is_wanted(params.context.only, action.kind) then
      local arguments = { name, buf, rows, is_selection }
      table.insert(actions, {
        title = action.title,
        kind = action.kind,
        command = { title = action.title, command = COMMAND, arguments = arguments },
      })
    end
  end
  return actions
end

---@type lcursor.LspHandlers
local HANDLERS = {
  ["textDocument/codeAction"] = function(call)
    local buf = server.buffer(call.params.textDocument.uri)
    call.reply(nil, buf and actions_for(buf, call.params) or {})
  end,
  ["workspace/executeCommand"] = function(call)
    call.reply(nil, vim.NIL)
    local name, buf, rows, is_selection = unpack(call.params.arguments or {})
    local win = buf and vim.fn.bufwinid(buf) or -1
    if ACTIONS[name] and win > 0 then
      if api.nvim_get_mode().mode:find("^[vV\22]") then
        vim.cmd("normal! \27")
      end
      api.nvim_set_current_win(win)
      notify.guarded(ACTIONS[name].run)(rows, is_selection)
    end
  end,
}

local CAPABILITIES = {
  codeActionProvider = { codeActionKinds = { "quickfix", "lcursor" } },
  executeCommandProvider = { commands = { COMMAND } },
}

--- Offer the actions in a buffer in which another server or a linter is at work. Their encoding is
--- that of the other server: many plugins use one for all clients of a buffer.
---@param event vim.api.keyset.create_autocmd.callback_args of LspAttach or DiagnosticChanged
function M.attach(event)
  local buf, other = event.buf, event.event == "LspAttach" and event.data.client_id
  local client = vim.lsp.get_client_by_id(other or 0) or vim.lsp.get_clients({ bufnr = buf })[1]
  local is_ours = other and client and client.name == NAME
  if is_ours or not api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= "" then
    return
  end
  local attached = { bufnr = buf, name = NAME, method = "textDocument/codeAction" }
  if #vim.lsp.get_clients(attached) == 0 and config.for_buffer(buf).enabled then
    local encoding = { positionEncoding = client and client.offset_encoding or "utf-16" }
    local own = server.client(NAME, vim.tbl_extend("error", CAPABILITIES, encoding), HANDLERS)
    if own then
      server.attach(own, buf)
    end
  end
end

return M
