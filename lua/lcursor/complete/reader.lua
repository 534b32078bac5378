-- Reads the beginnings of files without ever waiting: each step is a callback of libuv.
-- What may be read is decided by who asks.

local M = {}

local uv = vim.uv
local MOST_BYTES = 64 * 1024

--- Find the first of some paths that is a file.
---@param paths string[]
---@param done fun(path?: string) on libuv's loop, where few functions of Neovim may be called
function M.first(paths, done)
  local number = 0
  local function step()
    number = number + 1
    local path = paths[number]
    if not path then
      return done(nil)
    end
    uv.fs_stat(path, function(_, stat)
      if stat and stat.type == "file" then
        return done(path)
      end
      step()
    end)
  end
  step()
end

--- Read the beginning of a file, whole lines of it.
---@param path string
---@param done fun(text?: string) on Neovim's loop; nil when it cannot be read or is binary
function M.read(path, done)
  local finish = vim.schedule_wrap(done)
  uv.fs_open(path, "r", 0, function(_, file)
    if not file then
      return finish(nil)
    end
    uv.fs_read(file, MOST_BYTES, 0, function(_, data)
      uv.fs_close(file, function() end)
      if not data or data:find("\0", 1, true) then
        return finish(nil)
      end
      data = data:gsub("\r\n", "\n")
      finish(#data < MOST_BYTES and data or data:match("^(.*)\n") or "")
    end)
  end)
end

return M
