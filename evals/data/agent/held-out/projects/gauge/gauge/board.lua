-- Shows series as text.

local M = {}

local BARS = { ".", ":", "|" }

-- Return a line with the name, the newest value and the mean of the last seconds.
function M.line(series, now, seconds)
  local newest, mean = series:newest(), series:mean(now - seconds)
  if not newest then
    return series.name .. ": no values"
  elseif not mean then
    return string.format("%s: %.1f, old", series.name, newest)
  end
  return string.format("%s: %.1f, mean %.1f", series.name, newest, mean)
end

-- Return a character for each of the newest values: its third of the range from low to high.
function M.spark(series, count, low, high)
  local marks = {}
  for _, sample in ipairs(series.ring:list(count)) do
    local third = math.floor((sample.value - low) / (high - low) * #BARS) + 1
    marks[#marks + 1] = BARS[math.max(1, math.min(third, #BARS))]
  end
  return table.concat(marks)
end

-- Return the series with the highest mean of the last seconds, nil if none has values then.
function M.busiest(list, now, seconds)
  local best, highest
  for _, series in ipairs(list) do
    local mean = series:mean(now - seconds)
    if mean and (not highest or mean > highest) then
      best, highest = series, mean
    end
  end
  return best
end

return M
