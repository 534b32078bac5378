-- Shows the file of a hit in a window, around the hit. Reads it without waiting, and never loads a
-- buffer of the user's.

local notify = require("lcursor.notify")

local M = {}

local api, uv = vim.api, vim.uv
local MOST_BYTES = 512 * 1024

---@class lcursor.Preview
---@field buf integer
---@field win integer
---@field path? string whose text it has
---@field wanted? string whose text it shall have

---@param path string
---@param done fun(text?: string) on Neovim's loop
local function read(path, done)
  local finish = vim.schedule_wrap(notify.guarded(done))
  uv.fs_open(path, "r", 0, function(_, file)
    if not file then
      return finish(nil)
    end
    uv.fs_read(file, MOST_BYTES, 0, function(_, data)
      uv.fs_close(file, function() end)
      finish(data)
    end)
  end)
end

---@param path string
---@return string[]? lines of the buffer that has the file
local function loaded(path)
  local buf = vim.fn.bufnr("^" .. vim.fn.escape(path, "\\*?[{") .. "$")
  if buf > 0 and api.nvim_buf_is_loaded(buf) then
    return api.nvim_buf_get_lines(buf, 0, 10000, false)
  end
end

---@param view lcursor.Preview
---@param lines string[]
---@param path string
local function fill(view, lines, path)
  vim.bo[view.buf].modifiable = true
  api.nvim_buf_set_lines(view.buf, 0, -1, false, lines)
  vim.bo[view.buf].modifiable = false
  local filetype = vim.filetype.match({ filename = path, contents = lines }) or ""
  pcall(vim.treesitter.stop, view.buf)
  local language = vim.treesitter.language.get_lang(filetype)
  if not (language and pcall(vim.treesitter.start, view.buf, language)) then
    vim.bo[view.buf].syntax = filetype -- not the filetype: that would attach language servers
  end
end

---@param view lcursor.Preview
---@param hit lcursor.IndexHit
---@param namespace integer
local function point(view, hit, namespace)
  local count = api.nvim_buf_line_count(view.buf)
  local first = math.min(hit.first_row, count - 1)
  api.nvim_buf_clear_namespace(view.buf, namespace, 0, -1)
  api.nvim_buf_set_extmark(view.buf, namespace, first, 0, {
    end_row = math.min(math.max(hit.end_row, first + 1), count),
    hl_group = "LCursorHit",
    hl_eol = true,
    strict = false,
  })
  if api.nvim_win_is_valid(view.win) then
    api.nvim_win_set_cursor(view.win, { first + 1, 0 })
    api.nvim_win_call(view.win, function()
      vim.cmd("normal! zt")
    end)
  end
end

--- Show where a hit stands.
---@param view lcursor.Preview
---@param hit? lcursor.IndexHit nil empties it
---@param namespace integer
function M.show(view, hit, namespace)
  view.wanted = hit and hit.path
  if not hit then
    view.path = nil
    return fill(view, {}, "")
  end
  local function whole(lines)
    view.path = hit.path
    fill(view, lines, hit.path)
    point(view, hit, namespace)
  end
  if view.path == hit.path then
    return point(view, hit, namespace)
  end
  local lines = loaded(hit.path)
  if lines then
    return whole(lines)
  end
  read(hit.path, function(text)
    if view.wanted ~= hit.path or not api.nvim_buf_is_valid(view.buf) then
      return
    end
    if not text or text:find("\0", 1, true) then
      text = hit.text
    end
    whole(vim.split((text:gsub("\r\n", "\n")), "\n", { plain = true }))
  end)
end

return M
