-- The public Lua API. Works without setup().

local M = {}

--- Set options; see :help lcursor-config. May be called again.
---@param opts? lcursor.Opts
function M.setup(opts)
  require("lcursor.config").setup(opts)
  if package.loaded["lcursor.host"] then
    local config = require("lcursor.config").for_host()
    require("lcursor.host.rpc").notify("config", { config = config })
  end
  if package.loaded["lcursor.complete"] then
    require("lcursor.complete").refresh()
  end
end

--- Request a suggestion at the cursor in insert mode, even if none would come automatically.
function M.complete()
  require("lcursor.complete").trigger()
end

--- Accept the suggestion. Only from insert mode, outside <expr> maps.
---@param kind? "all"|"line"|"word"
---@return boolean whether there was a suggestion
function M.accept(kind)
  return require("lcursor.complete").accept(kind)
end

--- Dismiss the suggestion until the text changes.
---@return boolean whether there was one
function M.dismiss()
  return require("lcursor.complete").dismiss()
end

--- Show another suggestion for the same place. The first time they are requested; the current one
--- stays until they arrive.
---@param by? integer steps; -1 is the one before
---@return boolean whether there was a suggestion
function M.cycle(by)
  return require("lcursor.complete").cycle(by or 1)
end

--- Search the indexed project of the current file; the results go to the quickfix list.
---@param text? string a query, or @ and the beginning of a name; nil opens the picker
function M.search(text)
  require("lcursor.index").search(text)
end

--- Open the chat about the project of the current file, or send a message. In Visual mode the
--- selection is attached.
---@param opts? lcursor.ChatCall
function M.chat(opts)
  require("lcursor.chat").call(opts or {})
end

--- Request an edit of the code at the cursor or of the selection, or let an agent plan a change of
--- the project; without an instruction, a small window asks for one. The result is shown as hunks.
---@param opts? lcursor.EditCall
function M.edit(opts)
  opts = opts or {}
  if opts.project then
    local task = { task = opts.instruction, range = opts.range, model = opts.model }
    return M.agent(vim.tbl_extend("error", task, { policy = "plan" }))
  end
  require("lcursor.edit.lcedit").run(opts)
end

--- The hunks of edits; see :help lcursor.hunks.
M.hunks = {}

---@param buf? integer 0 is the current one; nil: of all files
---@return table[] open hunks
function M.hunks.list(buf)
  return require("lcursor.edit.hunks").list(buf)
end

--- Accept the hunk at the cursor, or others.
---@param call? lcursor.HunkCall
---@return integer count of those that were accepted
function M.hunks.accept(call)
  return require("lcursor.edit.hunks").decide("accept", call or {})
end

--- Reject the hunk at the cursor, or others.
---@param call? lcursor.HunkCall
---@return integer count of those that were rejected
function M.hunks.reject(call)
  return require("lcursor.edit.hunks").decide("reject", call or {})
end

--- Go to the next hunk, also in another file.
---@param count? integer below 0 backwards
function M.hunks.next(count)
  require("lcursor.edit.hunks").next(count or 1)
end

--- Go to the previous hunk, also in another file.
---@param count? integer
function M.hunks.prev(count)
  require("lcursor.edit.hunks").next(-(count or 1))
end

--- Start an agent. In Visual mode it gets the selection; without a task, a small window asks for
--- one.
---@param opts? lcursor.AgentCall
function M.agent(opts)
  require("lcursor.agent").call(opts or {})
end

---@return boolean whether a suggestion is visible
function M.is_visible()
  return require("lcursor.complete.ghost").is_visible()
end

---@param buf? integer
---@return boolean is_on
local function switch(is_on, buf)
  local scope, switched_off = buf and vim.b[buf] or vim.g, require("lcursor.config").switched_off
  scope.lcursor_enabled = nil
  local is_off = switched_off("completion", buf) ~= nil
  if not is_on then
    is_off = is_off and switched_off("next_edit", buf) ~= nil
  end
  if is_off == is_on then
    scope.lcursor_enabled = is_on -- the settings say otherwise
  end
  require("lcursor.host.status").draw()
  require("lcursor.complete").refresh()
  if package.loaded["lcursor.next_edit"] then
    require("lcursor.next_edit").refresh()
  end
  return is_on
end

--- Switch completion and next edits on.
---@param buf? integer only in this buffer; 0 is the current one
---@return boolean whether it is on now
function M.enable(buf)
  return switch(true, buf)
end

--- Switch completion and next edits off.
---@param buf? integer only in this buffer; 0 is the current one
---@return boolean whether it is on now
function M.disable(buf)
  return switch(false, buf)
end

--- Switch completion and next edits on or off.
---@param buf? integer only in this buffer; 0 is the current one
---@return boolean whether it is on now
function M.toggle(buf)
  return switch(require("lcursor.config").switched_off("completion", buf) ~= nil, buf)
end

--- End the host, the autocommands and what is drawn, so that the plugin can be loaded again. Plugin
--- managers call this before they load it.
function M.deactivate()
  local proposals = package.loaded["lcursor.edit.proposals"]
  for _, proposal in ipairs(proposals and proposals.all() or {}) do
    proposals.drop(proposal.key) -- what is not drawn yet would be drawn later
  end
  if package.loaded["lcursor.host"] then
    require("lcursor.host").stop()
  end
  for _, client in ipairs(vim.lsp.get_clients()) do
    if vim.startswith(client.name, "lcursor") then
      client:stop()
    end
  end
  for _, autocmd in ipairs(vim.api.nvim_get_autocmds({})) do
    if vim.startswith(autocmd.group_name or "", "lcursor") then
      vim.api.nvim_del_autocmd(autocmd.id)
    end
  end
  for name, namespace in pairs(vim.api.nvim_get_namespaces()) do
    for _, buf in ipairs(vim.startswith(name, "lcursor") and vim.api.nvim_list_bufs() or {}) do
      vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    end
  end
  vim.g.loaded_lcursor = nil
end

---@return string for a statusline; "" if there is nothing to report
function M.status()
  return require("lcursor.host.status").text()
end

return M
