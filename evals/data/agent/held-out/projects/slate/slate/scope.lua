-- The names that a part of a template can use.

local M = {}

-- Return a scope with the names of another one, and more of its own.
function M.child(parent, names)
  return setmetatable(names, { __index = parent })
end

-- Return the value of a path like "item.owner.name", nil if a part of it is missing.
function M.look_up(scope, path)
  local value = scope
  for key in path:gmatch("[^.]+") do
    if type(value) ~= "table" then
      return nil
    end
    value = value[tonumber(key) or key]
  end
  return value
end

return M
