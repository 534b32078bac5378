-- Values with their times, in seconds.

local Ring = require("gauge.ring")

local Series = {}
Series.__index = Series

function Series.new(name, size)
  return setmetatable({ name = name, ring = Ring.new(size or 60) }, Series)
end

-- Add a value; times must not decrease.
function Series:add(time, value)
  local newest = self.ring:get(0)
  assert(not newest or time >= newest.time, "times must not decrease")
  self.ring:push({ time = time, value = value })
end

-- Return the newest value, nil if there is none.
function Series:newest()
  local sample = self.ring:get(0)
  return sample and sample.value
end

-- Return the values from a time on, the oldest first.
function Series:since(time)
  local found = {}
  for _, sample in ipairs(self.ring:list()) do
    if sample.time >= time then
      found[#found + 1] = sample.value
    end
  end
  return found
end

-- Return the mean of the values from a time on, nil if there are none.
function Series:mean(time)
  local values, sum = self:since(time), 0
  for _, value in ipairs(values) do
    sum = sum + value
  end
  if #values == 0 then
    return nil
  end
  return sum / #values
end

-- Return how much the value grows a second, nil with less than two different times.
function Series:rate()
  local samples = self.ring:list()
  local first, last = samples[1], samples[#samples]
  if not first or last.time == first.time then
    return nil
  end
  return (last.value - first.value) / (last.time - first.time)
end

return Series
