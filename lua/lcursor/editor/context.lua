-- Reads the text around a position for `fim.request`, and finds the file of a buffer. The work is
-- bounded: only so many lines and bytes are read, even in a line of a megabyte.

local by_buffer = require("lcursor.editor.by_buffer")
local text = require("lcursor.text")

local M = {}

local api = vim.api

local BEFORE_LINES, BEFORE_BYTES = 300, 16 * 1024
local AFTER_LINES, AFTER_BYTES = 100, 8 * 1024
local STEP_LINES = 64
local TOP_LINES, TOP_BYTES = 40, 4096 -- no more than privacy.lua searches for a private key
local MARKERS = { ".git", ".hg", ".svn", "pyproject.toml", "package.json", "Cargo.toml", "go.mod" }

---@class lcursor.Location
---@field path string
---@field name string
---@field repo string
---@field root string folder of the project, or of the file if there is none

---@type table<integer, lcursor.Location>
local locations = by_buffer.new()
---@type table<integer, integer> buffer -> first row of its last window
local starts = by_buffer.new()

---@return string without an incomplete character at its end
local function whole_at_end(str)
  local last = #str
  while last > 0 and last > #str - 4 do
    local byte = str:byte(last)
    if byte < 0x80 then
      return str
    elseif byte >= 0xC0 then
      local length = byte >= 0xF0 and 4 or byte >= 0xE0 and 3 or 2
      return #str - last + 1 >= length and str or str:sub(1, last - 1)
    end
    last = last - 1
  end
  return str
end

--- Return the first row of the window. It stays the same as long as that gives a good window, and
--- moves in steps: text that begins the same can reuse the KV cache.
local function first_row_of(buf, row, col)
  local offset = api.nvim_buf_get_offset
  local cursor = offset(buf, row) + col
  ---@param first integer
  local function bytes_from(first)
    return cursor - offset(buf, first)
  end
  ---@return integer lowest row from which at most that much is read
  local function lowest_row(bytes, lines)
    local low, high = math.max(0, row - lines), row
    while low < high do
      local middle = math.floor((low + high) / 2)
      if bytes_from(middle) <= bytes then
        high = middle
      else
        low = middle + 1
      end
    end
    return low
  end

  local lowest = lowest_row(BEFORE_BYTES, BEFORE_LINES)
  local known = starts[buf]
  if known and known >= lowest and known <= row then
    if known == lowest or bytes_from(known) >= bytes_from(lowest) / 2 then
      return known
    end
  end
  if lowest > 0 then
    -- Leave room to grow, so that the window moves rarely.
    local roomy = lowest_row(math.floor(BEFORE_BYTES * 3 / 4), BEFORE_LINES - STEP_LINES)
    local enough, step = bytes_from(roomy) / 2, STEP_LINES
    lowest = roomy
    while step > 1 do
      local aligned = math.ceil(roomy / step) * step
      if aligned <= row and bytes_from(aligned) >= enough then
        lowest = aligned
        break
      end
      step = step / 2
    end
  end
  starts[buf] = lowest
  return lowest
end

---@return string prefix
---@return integer first_row
local function before(buf, row, col)
  local first = first_row_of(buf, row, col)
  if first == row and col > BEFORE_BYTES then
    -- Such a long line is cut; otherwise a prefix begins at the start of a line.
    local cut = api.nvim_buf_get_text(buf, row, col - BEFORE_BYTES, row, col, {})
    return text.join({ (cut[1]:gsub("^[\128-\191]+", "")) }), first
  end
  return text.join(api.nvim_buf_get_text(buf, first, 0, row, col, {})), first
end

---@return string suffix
local function after(buf, row, col)
  local offset = api.nvim_buf_get_offset
  local from = offset(buf, row) + col
  local last = math.min(row + AFTER_LINES, api.nvim_buf_line_count(buf) - 1)
  local low, high = row, last
  while low < high do -- the last row that begins within the limit
    local middle = math.ceil((low + high) / 2)
    if offset(buf, middle) - from < AFTER_BYTES then
      low = middle
    else
      high = middle - 1
    end
  end
  local room = AFTER_BYTES - math.max(0, offset(buf, low) - from)
  local stop = (low == row and col or 0) + room
  if stop >= offset(buf, low + 1) - offset(buf, low) - 1 then
    stop = -1 -- all of the line
  end
  local lines = api.nvim_buf_get_text(buf, row, col, low, stop, {})
  if stop ~= -1 then
    lines[#lines] = whole_at_end(lines[#lines])
  elseif low == api.nvim_buf_line_count(buf) - 1 and vim.bo[buf].endofline then
    table.insert(lines, "") -- the file ends with a newline
  end
  return text.join(lines)
end

---@param first_row integer of the window
---@return string top the file's first lines, if the window begins after them
local function top_of(buf, first_row)
  local last = math.min(first_row, TOP_LINES)
  while last > 0 and api.nvim_buf_get_offset(buf, last) > TOP_BYTES do
    last = last - 1
  end
  return last == 0 and "" or text.join(api.nvim_buf_get_lines(buf, 0, last, false))
end

--- Return the file of a buffer; nil for help pages, terminals and URLs of plugins.
---@return string? absolute
function M.file(buf)
  local path = api.nvim_buf_get_name(buf)
  if path ~= "" and vim.bo[buf].buftype == "" and not path:find("^%a[%w+.-]*://") then
    return vim.fs.abspath(path)
  end
end

--- Return the loaded buffer of a file.
---@param path string absolute
---@return integer?
function M.buffer(path)
  local real = vim.uv.fs_realpath(path) or path
  return vim.iter(api.nvim_list_bufs()):find(function(buf)
    if not api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= "" then
      return false
    end
    local name = api.nvim_buf_get_name(buf)
    return name ~= "" and (name == path or (vim.uv.fs_realpath(name) or name) == real)
  end)
end

--- Return the folder of the repository that a file is in.
---@param path string absolute
---@return string?
function M.repository(path)
  return vim.fs.root(path, { ".git", ".hg", ".svn" })
end

--- Return what a command is about: the file of the current buffer, or the working directory.
---@return string absolute
function M.here()
  return M.file(0) or assert(vim.uv.cwd())
end

--- Return where the file of a buffer is in its project.
---@return lcursor.Location
function M.location(buf)
  local path = api.nvim_buf_get_name(buf)
  local known = locations[buf]
  if known and known.path == path then
    return known
  end
  local root = path ~= "" and vim.fs.root(path, MARKERS) or nil
  local folder = root or (path ~= "" and vim.fs.dirname(path)) or vim.uv.cwd() or ""
  local location = {
    path = path,
    name = path == "" and "" or (vim.fs.relpath(folder, path) or vim.fs.basename(path)),
    repo = vim.fs.basename(folder),
    root = folder,
  }
  locations[buf] = location
  return location
end

--- Return a request for a position, without id and trigger.
---@return lcursor.Request
function M.read(buf, row, col)
  local location = M.location(buf)
  local prefix, first_row = before(buf, row, col)
  return {
    buf = buf,
    tick = api.nvim_buf_get_changedtick(buf),
    path = location.path,
    name = location.name,
    repo = location.repo,
    filetype = vim.bo[buf].filetype,
    first_row = first_row,
    row = row,
    col = col,
    prefix = prefix,
    suffix = after(buf, row, col),
    top = top_of(buf, first_row),
  }
end

return M
