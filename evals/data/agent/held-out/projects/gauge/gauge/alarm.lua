-- Compares the mean of a series with limits.

local Alarm = {}
Alarm.__index = Alarm

-- An alarm is on while the mean of the last seconds is outside of the limits.
function Alarm.new(series, seconds, low, high)
  return setmetatable({ series = series, seconds = seconds, low = low, high = high }, Alarm)
end

-- Return whether it is on at a time, and which limit is passed: "low" or "high". Without values
-- it is off.
function Alarm:check(now)
  local mean = self.series:mean(now - self.seconds)
  if not mean then
    return false
  elseif mean < self.low then
    return true, "low"
  elseif mean > self.high then
    return true, "high"
  end
  return false
end

-- Return the names of the series whose alarms are on at a time, sorted.
function Alarm.active(alarms, now)
  local names = {}
  for _, alarm in ipairs(alarms) do
    if alarm:check(now) then
      names[#names + 1] = alarm.series.name
    end
  end
  table.sort(names)
  return names
end

return Alarm
