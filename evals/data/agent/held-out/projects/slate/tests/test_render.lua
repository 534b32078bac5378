local render = require("slate.render").render

local tests = {}

tests["values"] = function()
  expect(render("{{ a }}, {{ b.c.2 }}, {{ d }}", { a = 1, b = { c = { "x", "y" } } }), "1, y, ")
end

tests["filters"] = function()
  expect(render("{{ name | squeeze | upper }}!", { name = "a  b" }), "A B!")
end

tests["if"] = function()
  expect(render("{% if a %}yes{% end %}.", { a = true }), "yes.")
  expect(render("{% if a %}yes{% end %}.", {}), ".")
end

tests["else"] = function()
  local template = "{% if a %}yes{% else %}no{% end %}."
  expect(render(template, { a = true }), "yes.")
  expect(render(template, {}), "no.")
end

tests["for"] = function()
  local items = { { name = "x" }, { name = "y" } }
  local template = "{% for item in items %}{{ index }}{{ item.name }} {% end %}"
  expect(render(template, { items = items }), "1x 2y ")
end

tests["names of a loop end with it"] = function()
  local template = "{% for item in items %}{{ item }}{% end %}-{{ item }}"
  expect(render(template, { items = { 1, 2 }, item = "mine" }), "12-mine")
end

return tests
