-- What Linux shows of the machine. On other systems the functions return that it is unknown.

local M = {}

local PRESSURE = "/proc/pressure/cpu" -- how long programs waited for the processor
local BUSY_PERCENT = 50 -- of the last ten seconds
local FEATURES = "/proc/cpuinfo"

M.is_linux = vim.uv.os_uname().sysname == "Linux"
--- What a text says when the processor is busy.
M.busy_text = "other programs use the processor"

---@return string? text of a file of the kernel
local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read("*a")
  if file then
    file:close()
  end
  return text
end

---@param path? string of the kernel's file
---@return boolean whether other programs use the processor; false if unknown
function M.is_busy(path)
  local text = read(path or PRESSURE) or ""
  return (tonumber(text:match("^some avg10=([%d.]+)")) or 0) >= BUSY_PERCENT
end

---@param features string[] of a CPU, such as "avx2"
---@return boolean whether this CPU has all of them; true if unknown
function M.has_features(features)
  local text = #features > 0 and read(FEATURES) or ""
  local line = text:match("\nflags%s*:([^\n]*)") or text:match("\nFeatures%s*:([^\n]*)")
  for _, feature in ipairs(line and features or {}) do
    if not (line .. " "):find(" " .. feature .. " ", 1, true) then
      return false
    end
  end
  return true
end

return M
