-- A list of limited size that forgets its oldest values.

local Ring = {}
Ring.__index = Ring

function Ring.new(size)
  assert(size >= 1, "the size must be at least 1")
  return setmetatable({ size = size, values = {}, count = 0, last = 0 }, Ring)
end

-- Add a value; the oldest one is forgotten if there are too many.
function Ring:push(value)
  self.last = self.last % self.size + 1
  self.values[self.last] = value
  self.count = math.min(self.count + 1, self.size)
end

-- Return a value by its age: 0 is the newest one; nil if there is none of this age.
function Ring:get(age)
  if age < 0 or age >= self.count then
    return nil
  end
  return self.values[(self.last - 1 - age) % self.size + 1]
end

-- Return a list of the newest values, all by default, the oldest first.
function Ring:list(count)
  local found = {}
  for age = math.min(count or self.count, self.count) - 1, 0, -1 do
    found[#found + 1] = self:get(age)
  end
  return found
end

return Ring
