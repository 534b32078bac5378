-- Runs the tests of tests/test_*.lua, each a table of functions by name.

local files = { "test_series", "test_alarm", "test_board" }
local passed, failed = 0, 0

-- Raise an error unless two values are equal; tables are compared by their contents.
function expect(found, wanted) -- luacheck: ignore
  local function show(value)
    if type(value) ~= "table" then
      return type(value) == "string" and string.format("%q", value) or tostring(value)
    end
    local keys = {}
    for key in pairs(value) do
      keys[#keys + 1] = key
    end
    table.sort(keys, function(one, other)
      return tostring(one) < tostring(other)
    end)
    for index, key in ipairs(keys) do
      keys[index] = tostring(key) .. " = " .. show(value[key])
    end
    return "{ " .. table.concat(keys, ", ") .. " }"
  end
  if show(found) ~= show(wanted) then
    error("expected " .. show(wanted) .. ", found " .. show(found), 2)
  end
end

for _, file in ipairs(files) do
  local tests, names = dofile("tests/" .. file .. ".lua"), {}
  for name in pairs(tests) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local good, problem = xpcall(tests[name], debug.traceback)
    if good then
      passed = passed + 1
    else
      failed = failed + 1
      print("FAILED " .. file .. " " .. name .. "\n" .. problem .. "\n")
    end
  end
end

print(passed .. " passed, " .. failed .. " failed")
os.exit(failed == 0 and 0 or 1)
