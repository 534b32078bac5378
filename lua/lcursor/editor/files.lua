-- Reads the beginnings of files without waiting. The caller decides what may be read.

local M = {}

local uv = vim.uv

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

--- Read the beginning of a file, in whole lines.
---@param done fun(text?: string) on Neovim's loop; nil if it cannot be read or is binary
function M.read(path, max_bytes, done)
  local finish = vim.schedule_wrap(done)
  uv.fs_open(path, "r", 0, function(_, file)
    if not file then
      return finish(nil)
    end
    uv.fs_read(file, max_bytes, 0, function(_, data)
      uv.fs_close(file, function() end)
      if not data or data:find("\0", 1, true) then
        return finish(nil)
      end
      data = data:gsub("\r\n", "\n")
      finish(#data < max_bytes and data or data:match("^(.*)\n") or "")
    end)
  end)
end

return M
