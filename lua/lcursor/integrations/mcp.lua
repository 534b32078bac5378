-- What `python -m lcursor mcp` asks of this Neovim, for another agent: unsaved text, diagnostics,
-- and to show a change as hunks. Each function returns plain data at once.

local buffers = require("lcursor.editor.buffers")
local config = require("lcursor.config")
local context = require("lcursor.editor.context")
local privacy = require("lcursor.editor.privacy")

local M = {}

local api = vim.api
local SEVERITIES = { "error", "warning", "information", "hint" }

---@param path string absolute
---@param root string
local function is_below(path, root)
  return vim.fs.relpath(root, vim.uv.fs_realpath(path) or path) ~= nil
end

--- Whether this Neovim works on a project.
---@param root string
---@return boolean
function M.has(root)
  return is_below(vim.fn.getcwd(), root)
    or vim.iter(api.nvim_list_bufs()):any(function(buf)
      return buffers.is_file(buf) and is_below(buffers.path(buf), root)
    end)
end

---@return string[] globs of files that the user keeps from models
function M.excluded()
  return config.get().privacy.exclude
end

---@return lcursor.EditText[]
function M.unsaved()
  return buffers.unsaved()
end

--- Return why the user's settings keep a file from models.
---@param path string absolute
---@return string?
function M.private_reason(path)
  local buf = context.buffer(path)
  if buf and api.nvim_buf_is_loaded(buf) then
    return privacy.private_reason(buf)
  end
  return privacy.name_reason(path)
end

---@param path string absolute; "": all files
---@return { path: string, line: integer, severity: string, message: string }[]
function M.diagnostics(path)
  local found = {}
  for _, each in ipairs(vim.diagnostic.get()) do
    local name = buffers.is_file(each.bufnr) and buffers.path(each.bufnr)
    if name and (path == "" or name == path) and not privacy.private_reason(each.bufnr) then
      table.insert(found, {
        path = name,
        line = each.lnum + 1,
        severity = SEVERITIES[each.severity],
        message = each.message:gsub("%s+", " "),
      })
    end
  end
  return found
end

--- Show a change as hunks.
---@param path string absolute
---@param diff string
---@return string? problem
function M.propose(path, diff)
  local why = M.private_reason(path)
  if why then
    return ("%s is not changed by models: %s"):format(buffers.relative(path), why)
  end
  if not require("lcursor.edit.apply_code").diff(diff, path) then
    return "the plugin cannot show it: see :LCursor status"
  end
end

return M
