local parser = require("slate.parser")

local tests = {}

tests["text and values"] = function()
  local nodes = parser.parse("a {{ b }}\n{{c}}")
  local kinds = {}
  for _, node in ipairs(nodes) do
    kinds[#kinds + 1] = node.kind .. ":" .. node.line .. ":" .. node.text
  end
  expect(kinds, { "text:1:a ", "value:1:b", "text:1:\n", "value:2:c" })
end

tests["blocks are nested"] = function()
  local nodes = parser.parse("{% if a %}{% for b in c %}x{% end %}{% end %}y")
  expect(#nodes, 2)
  expect(nodes[1].condition, "a")
  expect(nodes[1].body[1].list, "c")
  expect(nodes[2].text, "y")
end

tests["a block without an end is an error"] = function()
  local good, problem = pcall(parser.parse, "x\n{% if a %}y")
  expect(good, false)
  expect(problem, "line 2: if has no end")
end

tests["an end without a block is an error"] = function()
  local good, problem = pcall(parser.parse, "{% end %}")
  expect(good, false)
  expect(problem, "line 1: unexpected end")
end

return tests
