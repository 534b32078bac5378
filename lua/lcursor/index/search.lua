-- `:LCursor search`: sends the search and shows the results in the quickfix list, in picker.lua or
-- in the picker of another plugin.

local sync = require("lcursor.index.sync")
local context = require("lcursor.editor.context")
local notify = require("lcursor.ui.notify")
local open = require("lcursor.ui.open")
local requests = require("lcursor.host.requests")

local M = {}

local api = vim.api
local MAX_HITS = 30
---@type table<string, string> part of a score -> why a hit was found
local REASONS = {
  definition = "defines the name",
  literal = "has the name",
  lexical = "matching words",
  vector = "similar meaning",
  recent = "viewed recently",
}

--- Return the words of a query that may occur in a text, in lower case.
---@return string[]
function M.words(query)
  local words, seen, plain = {}, {}, query
  for _, filter in ipairs({ "path", "file", "lang", "language", "kind" }) do
    local start = "%f[%w]" .. filter .. ":"
    plain = plain:gsub(start .. '"[^"]*"', " "):gsub(start .. "%S+", " ")
  end
  for word in plain:lower():gmatch("[%w_\128-\255]+") do
    if #word > 1 and not seen[word] then
      seen[word] = true
      table.insert(words, word)
    end
  end
  return words
end

--- Return the line of a hit that contains most words.
---@param hit lcursor.IndexHit
---@param words string[]
---@return integer row 0-based, in the file
---@return string line without indentation
function M.best_line(hit, words)
  local lines = vim.split((hit.text:gsub("\n$", "")), "\n", { plain = true })
  local best, max = nil, -1
  for i, line in ipairs(lines) do
    local lower, count = line:lower(), line:find("%S") and 0 or -1
    for _, word in ipairs(count == 0 and words or {}) do
      count = count + (lower:find(word, 1, true) and 1 or 0)
    end
    if count > max then
      best, max = i, count
    end
  end
  if not best then
    return hit.first_row, ""
  end
  -- The text of a class may leave out method bodies; then rows cannot be computed.
  local is_whole = #lines == hit.end_row - hit.first_row
  return hit.first_row + (is_whole and best - 1 or 0), vim.trim(lines[best])
end

--- Return what is shown before the line of a hit: its scope, without a name that is in the line.
---@return string ends with ": " unless it is empty
local function label(hit, line)
  local names = vim.split(hit.scope, " > ", { plain = true })
  if hit.kind == "" and line:find("%f[%w_]" .. vim.pesc(names[#names]) .. "%f[^%w_]") then
    table.remove(names)
  end
  local scope = table.concat(names, " > ")
  local text = hit.kind ~= "" and scope ~= "" and (hit.kind .. " in " .. scope) or hit.kind .. scope
  text = hit.is_stale and vim.trim(text .. " (changed since)") or text
  return text ~= "" and (text .. ": ") or ""
end

--- Return an item for each hit. Hits with the same line, such as a class and its outline, are one.
---@param found lcursor.IndexFound
---@return lcursor.Item[]
function M.items(found)
  local words, items, seen = M.words(found.query), {}, {}
  for _, hit in ipairs(found.hits) do
    local row, line = M.best_line(hit, words)
    local text = label(hit, line) .. line
    ---@type lcursor.Item
    local item = {
      cells = { { ("%s:%d"):format(hit.name, row + 1), "LCursorHitFile" }, { ": " .. text } },
      file = hit.path,
      row = row,
      end_row = math.max(hit.end_row, row + 1),
      text = text,
      hit = hit,
      confirm = function(command)
        M.jump(hit, row, command)
      end,
    }
    local key = ("%s:%d %s"):format(hit.path, row, hit.kind ~= "" and text or "")
    if not seen[key] then
      seen[key] = true
      table.insert(items, item)
    end
  end
  return items
end

--- Return why a hit was found, the main reason first.
---@param hit lcursor.IndexHit
function M.reasons(hit)
  local names = vim.tbl_filter(function(name)
    return REASONS[name] ~= nil
  end, vim.tbl_keys(hit.parts))
  table.sort(names, function(one, other)
    return hit.parts[one] > hit.parts[other]
  end)
  local reasons = vim.tbl_map(function(name)
    return REASONS[name]
  end, names)
  return table.concat(reasons, ", ")
end

---@type integer? id of the latest request
local latest
---@type fun()? called if it has no answer
local latest_failed

local function fail()
  local failed = latest_failed
  latest_failed = nil
  if failed then
    failed()
  end
end

--- Ignore the answer that is still to come.
function M.forget()
  requests.forget(latest)
  fail()
end

--- Search for a text; `@name` searches for definitions. Replaces an earlier search.
---@param path string absolute, in the project
---@param done fun(found: lcursor.IndexFound)
---@param failed? fun() called instead if there is no answer
---@param is_typed? boolean whether the user is typing the text
function M.ask(path, text, done, failed, is_typed)
  M.forget()
  sync.flush()
  local method, params = "index.search", { path = path, limit = MAX_HITS }
  params.name = text:match("^%s*@%s*(.-)%s*$")
  if params.name then
    method = "index.symbols"
  else
    params.text, params.mode = text, "hybrid"
  end
  latest_failed = failed
  latest = requests.ask(method, params, function(found)
    latest_failed = nil
    done(found)
  end, fail, is_typed)
  if not latest then
    fail()
  end
end

--- Return the search for the picker of another plugin.
---@param path string absolute, in the project
---@return lcursor.Source
function M.source(path)
  local note = ""
  return {
    title = "Search",
    preview = "file",
    is_live = true,
    find = function(text, done)
      if not text:find("[^%s@]") then
        M.forget()
        return done({})
      end
      M.ask(path, text, function(found)
        if found.note ~= note and found.note ~= "" then
          notify.info(found.note)
        end
        note = found.note
        done(M.items(found))
      end, function()
        done({})
      end, true)
    end,
  }
end

--- Put the results into the quickfix list, and open it unless the user is typing.
---@param found lcursor.IndexFound
---@param must_open? boolean open it in any case
function M.quickfix(found, must_open)
  local note = found.note ~= "" and (" (%s)"):format(found.note) or ""
  if #found.hits == 0 then
    return notify.info(("nothing found for %s%s"):format(found.query, note))
  end
  local items = vim.tbl_map(function(item)
    local first, last = item.row + 1, item.end_row
    return { filename = item.file, lnum = first, end_lnum = last, col = 1, text = item.text }
  end, M.items(found))
  vim.fn.setqflist({}, " ", { title = ":LCursor search " .. found.query, items = items })
  local text = ("%d found for %s in %.0f ms%s"):format(#items, found.query, found.ms, note)
  if must_open or api.nvim_get_mode().mode:find("^n") then
    vim.cmd("botright copen")
    notify.info(text)
  else
    notify.info(text .. "; see :copen")
  end
end

---@param hit lcursor.IndexHit
---@param row integer 0-based
---@param command? lcursor.OpenCommand
function M.jump(hit, row, command)
  local win, message = open.file(hit.path, { row = row, command = command })
  if not win then
    notify.warn(message)
  end
end

--- Run `:LCursor search {text}`; without a text it opens a window to type into.
function M.run(text)
  local path = context.here()
  if text:find("%S") then
    M.ask(path, text, M.quickfix)
  else
    require("lcursor.index.picker").open(path)
  end
end

return M
