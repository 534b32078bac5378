-- Writes numbers for the user: counts, sizes, times. Pure.

local M = {}

--- Format a count in at most four characters: 1.5k, 12k, 3M.
function M.short(count)
  if count < 1000 then
    return ("%d"):format(count)
  elseif count < 9950 then
    return (("%.1fk"):format(count / 1000):gsub("%.0k", "k"))
  elseif count < 999500 then
    return ("%.0fk"):format(count / 1000)
  end
  return (("%.1fM"):format(count / 1e6):gsub("%.0M", "M"))
end

--- Format a number of tokens: that of a context is usually a multiple of 1024.
function M.tokens(count)
  return count >= 1024 and count % 1024 == 0 and ("%dk"):format(count / 1024) or M.short(count)
end

--- Format a number with a comma at each thousand.
function M.grouped(count)
  local digits = ("%d"):format(count):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (digits:gsub("^,", ""))
end

function M.bytes(bytes)
  for _, unit in ipairs({ "bytes", "KB", "MB" }) do
    if bytes < 1000 then
      return (unit == "bytes" and "%d %s" or "%.1f %s"):format(bytes, unit)
    end
    bytes = bytes / 1000
  end
  return ("%.1f GB"):format(bytes)
end

--- Format a time: whole seconds, at least one; from 90 on minutes.
---@param has_tenths? boolean below 10 seconds tenths, and no least time
function M.duration(seconds, has_tenths)
  if seconds >= 90 then
    return ("%.0f min"):format(seconds / 60)
  elseif has_tenths then
    return (seconds < 10 and "%.1f s" or "%.0f s"):format(seconds)
  end
  return ("%d s"):format(math.max(math.ceil(seconds), 1))
end

return M
