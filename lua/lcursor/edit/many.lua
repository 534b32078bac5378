-- The same instruction at all entries of a quickfix or location list. Reads the list; what comes of
-- it is one turn over all its files.

local notify = require("lcursor.notify")
local privacy = require("lcursor.privacy")
local config = require("lcursor.config")
local reader = require("lcursor.edit.reader")
local words = require("lcursor.edit.words")

local M = {}

local api = vim.api
local MOST_PLACES = 500

--- The list that the current window shows.
---@return table[]? items nil where it shows none
---@return string? title
function M.here()
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  if not info or info.quickfix ~= 1 then
    return nil
  end
  local what = { items = 0, title = 0 }
  local list = info.loclist == 1 and vim.fn.getloclist(0, what) or vim.fn.getqflist(what)
  return list.items, list.title
end

--- The places of some entries, each line of a file once.
---@param items table[]
---@return lcursor.EditPlace[]
---@return string[] problems
function M.places(items)
  local places, problems, seen, secrets = {}, {}, {}, 0
  for _, item in ipairs(items) do
    local path = item.bufnr > 0 and api.nvim_buf_get_name(item.bufnr) or ""
    if path ~= "" and item.lnum > 0 then
      path = vim.fs.abspath(path)
      local key = ("%s:%d"):format(path, item.lnum)
      if privacy.is_secret_path(path, config.get().completion.secrets) then
        secrets = secrets + 1
      elseif not seen[key] then
        seen[key] = true
        table.insert(places, { path = path, row = item.lnum - 1, text = vim.trim(item.text) })
      end
    end
  end
  if secrets > 0 then
    local what = words.many(secrets, "entry", "entries")
    table.insert(problems, what .. " left out: in files whose names say that they hold secrets")
  end
  if #places > MOST_PLACES then
    table.insert(problems, ("only the first %d are taken"):format(MOST_PLACES))
    places = vim.list_slice(places, 1, MOST_PLACES)
  end
  return places, problems
end

--- Ask for the same change at many places.
---@param items table[] of the list
---@param instruction string
---@param model? string
---@return lcursor.EditRun?
function M.ask(items, instruction, model)
  local places, problems = M.places(items)
  if #problems > 0 then
    notify.warn(table.concat(problems, "; "))
  end
  if #places == 0 then
    return notify.info("there is no place in a file in this list")
  end
  local paths = vim.tbl_map(function(place)
    return place.path
  end, places)
  local buffers = reader.unsaved()
  local known = vim.tbl_map(function(text)
    return text.path
  end, buffers)
  for _, text in ipairs(reader.loaded(paths)) do -- their ticks are wanted, saved or not
    if not vim.list_contains(known, text.path) then
      table.insert(buffers, text)
    end
  end
  return require("lcursor.edit").begin("edit.many", {
    path = places[1].path,
    places = places,
    instruction = instruction,
    buffers = buffers,
    model = model or "",
    served = require("lcursor.edit.look").served(),
  }, { what = "many", instruction = instruction, model = model })
end

return M
