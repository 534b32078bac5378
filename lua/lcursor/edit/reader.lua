-- What an edit reads of the editor: the buffer that it is about, others that are not saved, where
-- one is. What privacy.lua keeps back is not read. Changes nothing.

local context = require("lcursor.context")
local privacy = require("lcursor.privacy")
local texts = require("lcursor.edit.texts")

local M = {}

local api = vim.api
local MOST_BYTES = 4 * 1024 * 1024
local MOST_OTHER_BYTES = 1024 * 1024

--- Whether a buffer is a file of the user's, saved or not.
---@param buf integer
---@return boolean
function M.is_file(buf)
  return api.nvim_buf_is_loaded(buf) and context.file(buf) ~= nil
end

---@param buf integer
---@return string absolute
function M.path(buf)
  return vim.fs.abspath(api.nvim_buf_get_name(buf))
end

--- A path as it is shown.
---@param path string absolute
---@return string
function M.shown(path)
  local root = vim.fs.root(path, { ".git", ".hg", ".svn" })
  return root and vim.fs.relpath(root, path) or vim.fn.fnamemodify(path, ":~:.")
end

---@param buf integer
---@return integer
local function bytes(buf)
  return api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf))
end

--- Why a buffer cannot be edited by a model, in the user's words.
---@param buf integer
---@return string?
function M.refusal(buf)
  if not M.is_file(buf) then
    local is_new = vim.bo[buf].buftype == "" and api.nvim_buf_get_name(buf) == ""
    return is_new and "the buffer has no name yet; :file NAME gives it one"
      or "this is no file, so nothing can be changed in it"
  end
  local name = M.shown(M.path(buf))
  local why = privacy.kept_back(buf)
  if why then
    return ("%s is not given to a model: %s"):format(name, why)
  elseif not vim.bo[buf].modifiable then
    return name .. " cannot be changed ('modifiable' is off)"
  elseif bytes(buf) > MOST_BYTES then
    return ("%s is too large: it has %.1f MB"):format(name, bytes(buf) / 1e6)
  end
  if texts.has_nul(buf) then
    return name .. " is no text: it has NUL bytes"
  end
end

--- All of a buffer.
---@param buf integer
---@return lcursor.EditText
function M.text(buf)
  return {
    path = M.path(buf),
    tick = api.nvim_buf_get_changedtick(buf),
    text = texts.joined(buf),
  }
end

--- The texts of some buffers, but for secrets and what is very large.
---@param bufs integer[]
---@return lcursor.EditText[]
local function texts_of(bufs)
  local found = {}
  for _, buf in ipairs(bufs) do
    if M.is_file(buf) and not privacy.kept_back(buf) and bytes(buf) <= MOST_OTHER_BYTES then
      table.insert(found, M.text(buf))
    end
  end
  return found
end

--- The buffers that differ from what is on disk.
---@param but? integer
---@return lcursor.EditText[]
function M.unsaved(but)
  return texts_of(vim.tbl_filter(function(buf)
    return buf ~= but and api.nvim_buf_is_loaded(buf) and vim.bo[buf].modified
  end, api.nvim_list_bufs()))
end

--- The buffers that are looked at, the one that was used last first, and those that differ from
--- what is on disk.
---@param first? integer
---@return lcursor.EditText[]
function M.seen(first)
  local bufs = { first }
  local function add(buf)
    if not vim.list_contains(bufs, buf) then
      table.insert(bufs, buf)
    end
  end
  for _, win in ipairs({ vim.fn.win_getid(), vim.fn.win_getid(vim.fn.winnr("#")) }) do
    add(api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) or bufs[1])
  end
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    add(api.nvim_win_get_buf(win))
  end
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) and vim.bo[buf].modified then
      add(buf)
    end
  end
  return texts_of(bufs)
end

--- The loaded buffers of some files.
---@param paths string[] absolute
---@return lcursor.EditText[]
function M.loaded(paths)
  local found = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if M.is_file(buf) and vim.list_contains(paths, M.path(buf)) then
      table.insert(found, M.text(buf)) -- for no model: secrets are taken back like all else
    end
  end
  return found
end

---@type string? the file that one was in last
local last

--- The file that one is in, or was in last; else the working folder.
---@return string absolute
function M.here()
  local buf = api.nvim_get_current_buf()
  if M.is_file(buf) then
    last = M.path(buf)
  end
  return last or assert(vim.uv.cwd())
end

--- Name of a file in its project.
---@param buf integer
---@return string
function M.name(buf)
  return context.place(buf).name
end

return M
