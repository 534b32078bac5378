-- What features read of buffers: the one they are about, others, the current file. What privacy.lua
-- keeps back from models is not read. Changes nothing.

local context = require("lcursor.editor.context")
local notify = require("lcursor.ui.notify")
local privacy = require("lcursor.editor.privacy")
local text = require("lcursor.text")

local M = { find = context.buffer }

local api = vim.api
local MAX_BYTES = 4 * 1024 * 1024
local MAX_OTHER_BYTES = 1024 * 1024
local MAX_FILE_BYTES = 8 * 1024 * 1024
local CACHE_MS = 100

--- Whether a buffer is a file of the user's, saved or not.
function M.is_file(buf)
  return api.nvim_buf_is_loaded(buf) and context.file(buf) ~= nil
end

--- Return the absolute path of a buffer.
function M.path(buf)
  return vim.fs.abspath(api.nvim_buf_get_name(buf))
end

--- Return a path as it is shown: relative to its project.
---@param path string absolute
function M.relative(path)
  local root = context.repository(path)
  return root and vim.fs.relpath(root, path) or vim.fn.fnamemodify(path, ":~:.")
end

---@return string name of its file in the project
function M.name(buf)
  return context.location(buf).name
end

--- Return a place in a file as editors write it: `a.py:3-5`.
---@param first integer row
---@param last integer
function M.location(name, first, last)
  return last > first + 1 and ("%s:%d-%d"):format(name, first + 1, last)
    or ("%s:%d"):format(name, first + 1)
end

local function size(buf)
  return api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf))
end

---@type { buf: integer, tick: integer, lines: string[], text?: string }? for several callers
local cached

--- Return the lines of a buffer. Reading 20,000 takes milliseconds, so they are kept for a moment.
---@return string[] not to be changed
function M.lines(buf)
  local tick = api.nvim_buf_get_changedtick(buf)
  if not cached or cached.buf ~= buf or cached.tick ~= tick then
    if not cached then
      vim.defer_fn(function()
        cached = nil
      end, CACHE_MS)
    end
    cached = { buf = buf, tick = tick, lines = api.nvim_buf_get_lines(buf, 0, -1, false) }
  end
  return cached.lines
end

--- Return the lines of a file on disk as a buffer would have them.
---@return string[]?
function M.read(path)
  local stat = vim.uv.fs_stat(path)
  local is_fit = stat and stat.type == "file" and stat.size <= MAX_FILE_BYTES
  local file = is_fit and io.open(path, "rb")
  if not file then
    return nil
  end
  local content = (file:read("*a") or ""):gsub("^\239\187\191", "")
  file:close()
  local unix, count = content:gsub("\r\n", "\n")
  local _, newlines = content:gsub("\n", "")
  content = (count == newlines and unix or content):gsub("\n$", "")
  return vim.split(content, "\n", { plain = true })
end

local function text_of(buf)
  local lines = M.lines(buf)
  local read = assert(cached)
  if not read.text then
    local joined = table.concat(lines, "\n")
    local _, newlines = joined:gsub("\n", "")
    -- Neovim's API gives a NUL as a newline.
    read.text = newlines == #lines - 1 and joined or text.join(vim.list_slice(lines))
  end
  return read.text
end

--- Return why a model cannot edit a buffer.
---@return string? nil if it can
function M.block_reason(buf)
  if not M.is_file(buf) then
    local is_new = vim.bo[buf].buftype == "" and api.nvim_buf_get_name(buf) == ""
    return is_new and "the buffer has no name yet; :file NAME gives it one"
      or "this buffer is not a file"
  end
  local name = M.relative(M.path(buf))
  local why = privacy.private_reason(buf)
  if why then
    return ("%s is not sent to a model: %s"):format(name, why)
  elseif not vim.bo[buf].modifiable then
    return name .. " cannot be changed ('modifiable' is off)"
  elseif size(buf) > MAX_BYTES then
    return ("%s is too large: it has %.1f MB"):format(name, size(buf) / 1e6)
  end
  local has_nul = text_of(buf):find("\0", 1, true) ~= nil
  return has_nul and name .. " is not text: it contains NUL bytes" or nil
end

--- Return all text of a buffer, as it goes to the backend.
---@return lcursor.EditText
function M.text(buf)
  return {
    path = M.path(buf),
    tick = api.nvim_buf_get_changedtick(buf),
    text = text_of(buf),
  }
end

---@param bufs integer[]
---@return lcursor.EditText[] of each once, without secrets and very large ones
local function texts(bufs)
  local found, seen = {}, {}
  for _, buf in ipairs(bufs) do
    local is_new = not seen[buf] and M.is_file(buf) and not privacy.private_reason(buf)
    seen[buf] = true
    if is_new and size(buf) <= MAX_OTHER_BYTES then
      table.insert(found, M.text(buf))
    end
  end
  return found
end

---@param except? integer
---@return integer[] buffers that differ from what is on disk
local function modified(except)
  return vim.tbl_filter(function(buf)
    return buf ~= except and api.nvim_buf_is_loaded(buf) and vim.bo[buf].modified
  end, api.nvim_list_bufs())
end

--- Return the buffers that differ from what is on disk.
---@param except? integer
---@return lcursor.EditText[]
function M.unsaved(except)
  return texts(modified(except))
end

--- Return the visible buffers, the current and the previous one first, and the unsaved ones.
---@param first? integer before all others
---@return lcursor.EditText[]
function M.visible(first)
  local bufs = { first }
  local previous = vim.fn.win_getid(vim.fn.winnr("#"))
  for _, win in ipairs({ 0, previous, unpack(api.nvim_tabpage_list_wins(0)) }) do
    if api.nvim_win_is_valid(win) then
      table.insert(bufs, api.nvim_win_get_buf(win))
    end
  end
  return texts(vim.list_extend(bufs, modified()))
end

--- Return the loaded buffers of some files, also those opened through a link. Not for a model:
--- secrets can be undone as well.
---@param paths string[] absolute
---@return lcursor.EditText[]
function M.loaded(paths)
  local function real(path)
    return vim.uv.fs_realpath(path) or path
  end
  local found, wanted = {}, {}
  for _, path in ipairs(paths) do
    wanted[real(path)] = true
  end
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if M.is_file(buf) and wanted[real(M.path(buf))] then
      table.insert(found, M.text(buf))
    end
  end
  return found
end

---@type string? the file that was current last
local last

--- Remember a buffer as the current one, if it is a file.
function M.remember(buf)
  if M.is_file(buf) then
    last = M.path(buf)
  end
end

--- Return the current file, else the one that was current last, else the working directory.
---@return string absolute
function M.here()
  M.remember(api.nvim_get_current_buf())
  return last or assert(vim.uv.cwd())
end

--- Run something that closes a window, now or once the command-line window is closed: before that
--- Neovim closes no other.
---@param fn fun()
function M.after_command_window(fn)
  if vim.fn.getcmdwintype() == "" then
    return fn()
  end
  api.nvim_create_autocmd("CmdwinLeave", {
    once = true,
    callback = vim.schedule_wrap(notify.guarded(fn)),
  })
end

---@return boolean whether no key that is being typed would go to a new window
local function is_free()
  return api.nvim_get_mode().mode == "n" and vim.fn.getcmdwintype() == ""
end

--- Run something that takes the cursor away, now or as soon as the user is in Normal mode and the
--- command-line window is closed: keys that are being typed would be lost, or taken for an answer.
---@param what string that waits, for the message
---@param fn fun()
---@param is_wanted? fun(): boolean whether it still is by then
function M.when_normal(what, fn, is_wanted)
  if is_free() then
    return fn()
  end
  local is_cmdwin = vim.fn.getcmdwintype() ~= ""
  local cause = is_cmdwin and "the command-line window is closed" or "you are in Normal mode"
  notify.info(("%s waits until %s"):format(what, cause))
  api.nvim_create_autocmd({ "ModeChanged", "CmdwinLeave" }, {
    pattern = { "*:n", "?" }, -- CmdwinLeave matches one character, the kind of the window
    callback = function(event)
      vim.schedule(notify.guarded(function()
        local is_still_wanted = not is_wanted or is_wanted()
        if is_still_wanted and not is_free() then
          return -- until the next event
        elseif pcall(api.nvim_del_autocmd, event.id) and is_still_wanted then
          fn()
        end
      end))
    end,
  })
end

return M
