local Series = require("gauge.series")
local board = require("gauge.board")

local tests = {}

local function make(name, ...)
  local series = Series.new(name, 4)
  for time, value in ipairs({ ... }) do
    series:add(time * 10, value)
  end
  return series
end

tests["line"] = function()
  expect(board.line(make("load", 1, 2, 4), 30, 10), "load: 4.0, mean 3.0")
  expect(board.line(make("load"), 30, 10), "load: no values")
end

tests["spark"] = function()
  expect(board.spark(make("load", 0, 5, 9), 3, 0, 9), ".:|")
  expect(board.spark(make("load", 9, 9, 0, 5, -1, 20), 3, 0, 9), ":.|")
end

tests["busiest"] = function()
  local idle, busy = make("idle", 1, 1), make("busy", 1, 8)
  expect(board.busiest({ idle, busy, make("empty") }, 20, 15), busy)
end

return tests
