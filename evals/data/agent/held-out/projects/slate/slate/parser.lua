-- Makes a tree of the parts of a template.

local lexer = require("slate.lexer")

local M = {}

-- Return a node of an opening tag, or nil.
local function open(part)
  local name, list = part.text:match("^for%s+([%w_]+)%s+in%s+([%w_.]+)$")
  if name then
    return { kind = "for", name = name, list = list, line = part.line, body = {} }
  end
  local condition = part.text:match("^if%s+([%w_.]+)$")
  if condition then
    return { kind = "if", condition = condition, line = part.line, body = {} }
  end
end

-- Return the tree of a template: a list of nodes, of which "for" and "if" have a body, and after
-- an else another one.
function M.parse(template)
  local root = { kind = "root", body = {} }
  local stack = { root }
  for _, part in ipairs(lexer.split(template)) do
    local top = stack[#stack]
    local body = top.other or top.body
    local node = part.kind == "tag" and open(part)
    if part.kind ~= "tag" then
      body[#body + 1] = part
    elseif node then
      body[#body + 1] = node
      stack[#stack + 1] = node
    elseif part.text == "else" and top ~= root and not top.other then
      top.other = {}
    elseif part.text == "end" and top ~= root then
      stack[#stack] = nil
    else
      error("line " .. part.line .. ": unexpected " .. part.text, 0)
    end
  end
  if #stack > 1 then
    local node = stack[#stack]
    error("line " .. node.line .. ": " .. node.kind .. " has no end", 0)
  end
  return root.body
end

return M
