-- Whether other programs use the processor, to explain why a model is slow.

local M = {}

local PRESSURE = "/proc/pressure/cpu" -- how long programs waited for the processor
local BUSY_PERCENT = 50 -- of the last ten seconds

--- What a text says then.
M.text = "other programs use the processor"

---@param path? string of the kernel's file
---@return boolean false if unknown
function M.is_busy(path)
  local file = io.open(path or PRESSURE)
  if not file then
    return false
  end
  local percent = tonumber((file:read("*l") or ""):match("^some avg10=([%d.]+)")) or 0
  file:close()
  return percent >= BUSY_PERCENT
end

return M
