local Series = require("gauge.series")

local tests = {}

local function make(size, ...)
  local series = Series.new("load", size)
  for time, value in ipairs({ ... }) do
    series:add(time * 10, value)
  end
  return series
end

tests["newest"] = function()
  expect(make(5):newest(), nil)
  expect(make(5, 1, 2):newest(), 2)
  expect(make(2, 1, 2, 3):newest(), 3)
end

tests["since"] = function()
  local series = make(5, 1, 2, 3)
  expect(series:since(20), { 2, 3 })
  expect(series:since(31), {})
end

tests["old values are forgotten"] = function()
  expect(make(3, 1, 2, 3, 4, 5):since(0), { 3, 4, 5 })
end

tests["mean"] = function()
  expect(make(5, 1, 2, 6):mean(0) == 3, true)
  expect(make(5, 1, 2, 6):mean(15) == 4, true)
end

tests["mean of nothing"] = function()
  expect(make(5):mean(0), nil)
end

tests["rate"] = function()
  expect(make(5, 1, 9, 5):rate() == 0.2, true)
  expect(make(5, 1):rate(), nil)
end

tests["times must not decrease"] = function()
  local series = make(5, 1, 2)
  expect(pcall(series.add, series, 19, 1), false)
end

return tests
