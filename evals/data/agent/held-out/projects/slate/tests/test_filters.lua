local filters = require("slate.filters")

local tests = {}

tests["upper"] = function()
  expect(filters.upper("ab"), "AB")
end

tests["trim"] = function()
  expect(filters.trim("  a b "), "a b")
end

tests["squeeze"] = function()
  expect(filters.squeeze("a  b\n c"), "a b c")
end

tests["escape"] = function()
  expect(filters.escape("<a & b>"), "&lt;a &amp; b&gt;")
end

tests["count"] = function()
  expect(filters.count({ 1, 2 }), 2)
end

return tests
