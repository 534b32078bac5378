local Alarm = require("gauge.alarm")
local Series = require("gauge.series")

local tests = {}

local function make(name, value)
  local series = Series.new(name)
  series:add(100, value)
  return Alarm.new(series, 30, 1, 10)
end

tests["within the limits"] = function()
  expect({ make("a", 5):check(110) }, { false })
end

tests["outside of the limits"] = function()
  expect({ make("a", 11):check(110) }, { true, "high" })
  expect({ make("a", 0):check(110) }, { true, "low" })
end

tests["active"] = function()
  expect(Alarm.active({ make("b", 99), make("c", 5), make("a", 0) }, 110), { "a", "b" })
end

return tests
