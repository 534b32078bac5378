-- Writes a template with values.

local filters = require("slate.filters")
local parser = require("slate.parser")
local scope = require("slate.scope")

local M = {}

-- Return the text that is written for a value; none for nil.
function M.to_text(value)
  return value == nil and "" or tostring(value)
end

-- Return the value of an expression like "name | trim | upper".
local function evaluate(part, names)
  local path, rest = part.text:match("^([%w_.]+)%s*(.*)$")
  if not path then
    error("line " .. part.line .. ": no value: " .. part.text, 0)
  end
  local value = scope.look_up(names, path)
  for name in rest:gmatch("|%s*([%w_]+)") do
    local filter = filters[name]
    if not filter then
      error("line " .. part.line .. ": no such filter: " .. name, 0)
    end
    value = filter(type(value) == "table" and value or M.to_text(value))
  end
  return value
end

local function write(nodes, names, output)
  for _, node in ipairs(nodes) do
    if node.kind == "text" then
      table.insert(output, node.text)
    elseif node.kind == "value" then
      table.insert(output, M.to_text(evaluate(node, names)))
    elseif node.kind == "if" then
      local body = scope.look_up(names, node.condition) and node.body or node.other
      write(body or {}, names, output)
    else
      local list = scope.look_up(names, node.list) or {}
      for index, item in ipairs(list) do
        local inner = scope.child(names, { [node.name] = item, index = index })
        write(node.body, inner, output)
      end
      if #list == 0 then
        write(node.other or {}, names, output)
      end
    end
  end
end

-- Return the text of a template with the values of a table, which is not changed.
function M.render(template, values)
  local output = {}
  write(parser.parse(template), scope.child(values, {}), output)
  return table.concat(output)
end

return M
