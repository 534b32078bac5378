-- Treesitter highlights of a text that is in no buffer of its language.

local M = {}

local SKIPPED = { spell = true, nospell = true, conceal = true, none = true }

---@type table<string, string|false> by filetype: its language, if it can be highlighted
local languages = {}

--- Return the language of a filetype if its parser and its highlight query can be loaded.
---@param filetype string
---@param pause? fun() called between steps that take long
---@return string?
function M.language(filetype, pause)
  pause = pause or function() end
  if languages[filetype] == nil then
    local language = vim.treesitter.language.get_lang(filetype) or ""
    pause()
    -- A parser built for another Neovim throws.
    local can_add, is_added = pcall(vim.treesitter.language.add, language)
    pause()
    local ok, query = pcall(vim.treesitter.query.get, language, "highlights")
    languages[filetype] = can_add and is_added and ok and query and language or false
    pause()
  end
  return languages[filetype] or nil
end

--- Parse a text; long ones take several slices.
---@param text string
---@param language string
---@param with_injected boolean also parse languages within others; these take no pause
---@param wait fun(start: fun(done: fun())) yields until `done` is called
---@return vim.treesitter.LanguageTree? nil if that is not possible
function M.parse(text, language, with_injected, wait)
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, language)
  if not ok then
    return nil
  end
  local problem
  wait(function(done)
    parser:parse(with_injected or nil, function(err)
      problem = err
      done()
    end)
  end)
  return not problem and parser or nil
end

--- Call a function with each highlight in some rows of a parsed text, also with those that begin
--- before the rows.
---@param parser vim.treesitter.LanguageTree
---@param text string
---@param first integer
---@param last integer row after the last
---@param each fun(group: string, range: Range6, priority?: integer): boolean? false stops
function M.each_highlight(parser, text, first, last, each)
  local trees = {}
  parser:for_each_tree(function(tree, language_tree)
    local top, _, bottom = tree:root():range()
    if top < last and bottom >= first then
      table.insert(trees, { root = tree:root(), language = language_tree:lang() })
    end
  end)
  local function highlight(tree)
    local query = vim.treesitter.query.get(tree.language, "highlights")
    for id, node, metadata in query:iter_captures(tree.root, text, first, last) do
      local name = query.captures[id]
      if not SKIPPED[name] and name:sub(1, 1) ~= "_" then
        local range = vim.treesitter.get_range(node, text, metadata[id])
        local group = ("@%s.%s"):format(name, tree.language)
        if each(group, range, tonumber(metadata.priority)) == false then
          return
        end
      end
    end
  end
  for _, tree in ipairs(trees) do
    pcall(highlight, tree) -- a query that does not fit its parser throws
  end
end

return M
