-- The servers with tools for agents (the Model Context Protocol): their list, and a window with all
-- that one may do, in which the user allows or denies it.

local buffers = require("lcursor.editor.buffers")
local list = require("lcursor.ui.list")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local short = require("lcursor.text").short
local window = require("lcursor.ui.window")

local M = {}

local MAX_NOTE = 90
local WORDS = {
  broken = "its settings are wrong",
  new = "new: nothing of it has run yet",
  changed = "changed since you allowed it, so it does not run",
  denied = "denied",
  allowed = "allowed, starts with its first use",
  starting = "starting",
  ready = "running",
  failed = "failed",
}
local GROUPS = {
  broken = "LCursorAgentFailed",
  failed = "LCursorAgentFailed",
  new = "LCursorAgentAsks",
  changed = "LCursorAgentAsks",
  starting = "LCursorAgentBusy",
  ready = "LCursorAgentDone",
}

---@param server table fields of `McpServer`
---@return integer number of tools that wait for the user's answer
local function count_unseen(server)
  return #vim.tbl_filter(function(tool)
    return tool.state == "new" or tool.state == "changed"
  end, server.tools)
end

---@param server table fields of `McpServer`
---@return string
local function note_of(server)
  local unseen = count_unseen(server)
  if server.problem ~= "" then
    return server.problem
  elseif unseen > 0 then
    return ("%s to allow"):format(many(unseen, "tool"))
  end
  return server.warning
end

---@param server table fields of `McpServer`
---@return lcursor.Cells
local function cells_of(server)
  local tools = #server.tools > 0 and many(#server.tools, "tool") or ""
  return {
    { server.name .. "  ", "LCursorChatTitle" },
    { server.state .. "  ", GROUPS[server.state] or "LCursorChatNote" },
    { tools .. "  ", "LCursorChatNote" },
    { short(note_of(server), MAX_NOTE), "LCursorChatNote" },
  }
end

---@param lines string[]
---@param title string
---@param found string[]
local function add(lines, title, found)
  if #found > 0 then
    vim.list_extend(lines, { "", title })
    for _, text in ipairs(found) do
      vim.list_extend(lines, vim.split("  " .. text, "\n", { plain = true }))
    end
  end
end

--- Return all that the user should read of a server.
---@param server table fields of `McpServer`
---@return string[]
function M.lines(server)
  local lines = vim.list_extend({}, server.policy)
  add(lines, "Changed since you allowed it:", server.changes)
  add(lines, "Warning:", server.warning ~= "" and { server.warning } or {})
  add(lines, "Problem:", server.problem ~= "" and { server.problem } or {})
  for _, tool in ipairs(server.tools) do
    if #tool.changes > 0 then
      add(lines, ("Changed in %s since you allowed it:"):format(tool.name), tool.changes)
    end
  end
  if #server.tools > 0 then
    vim.list_extend(lines, { "", many(#server.tools, "tool") .. ":" })
  elseif server.state ~= "ready" then
    vim.list_extend(lines, { "", "Its tools are listed here once it has run." })
  end
  for _, tool in ipairs(server.tools) do
    for i, text in ipairs(tool.lines) do
      table.insert(lines, (i == 1 and ("  %-8s  %s"):format(tool.state, text)) or "  " .. text)
    end
  end
  return lines
end

---@param server table fields of `McpServer`
---@return string for the winbar
local function keys_of(server)
  local is_open = server.state == "new" or server.state == "changed" or server.state == "denied"
  local keys = {}
  if server.state ~= "broken" and (is_open or count_unseen(server) > 0) then
    table.insert(keys, "a allow what is shown")
  end
  if server.state ~= "denied" then
    table.insert(keys, "x deny")
  end
  return table.concat(vim.list_extend(keys, { "r restart", "q close" }), ", ")
end

local show

--- Send a request about a server, and show it as it is then.
---@param path string absolute
---@param server table fields of `McpServer`
---@param method string
---@param params? table
local function ask(path, server, method, params)
  params = vim.tbl_extend("error", { path = path, server = server.name }, params or {})
  notify.progress(("asking %s …"):format(server.name))
  requests.ask(method, params, function(answer)
    buffers.when_normal(("the server %s"):format(server.name), function()
      show(path, answer.server)
    end)
  end)
end

--- Show all of a server.
---@param path string absolute
---@param server table fields of `McpServer`
show = function(path, server)
  local head = ("%s: %s"):format(server.name, WORDS[server.state])
  local buf = window.split("mcp-server", M.lines(server), head, keys_of(server))
  local function map(lhs, fn)
    vim.keymap.set("n", lhs, notify.guarded(fn), { buffer = buf, nowait = true })
  end
  map("a", function()
    ask(path, server, "mcp.decide", { is_allowed = true, shown = server.shown })
  end)
  map("x", function()
    ask(path, server, "mcp.decide", { is_allowed = false, shown = server.shown })
  end)
  map("r", function()
    ask(path, server, "mcp.restart")
  end)
end

--- List the servers of the settings.
function M.open()
  local path = buffers.here()
  list.open({
    name = "mcp",
    cells = cells_of,
    head = function(servers)
      return many(#servers, "MCP server")
    end,
    load = function(done)
      requests.ask("mcp.list", { path = path }, function(listed)
        done(listed.servers)
      end)
    end,
    empty = "no servers: set mcp.servers, or see :LCursor mcp import",
    keys = {
      {
        "<CR>",
        "show, allow",
        function(server)
          ask(path, server, "mcp.show")
        end,
        closes = true,
      },
      {
        "r",
        "restart",
        function(server)
          ask(path, server, "mcp.restart")
        end,
        closes = true,
      },
      { "R", "refresh", list.load, on = "list" },
    },
  })
end

--- Show the servers in the settings of other programs as text to copy.
function M.import()
  requests.ask("mcp.import", { path = buffers.here() }, function(imported)
    buffers.when_normal("the list", function()
      local buf =
        window.split("mcp-import", imported.lines, "MCP servers of other programs", "q close")
      vim.bo[buf].filetype = "lua"
    end)
  end)
end

return M
