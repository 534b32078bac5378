-- Sources for fzf-lua: require("lcursor.integrations.fzf_lua").open("search").

local context = require("lcursor.editor.context")
local sources = require("lcursor.integrations.sources")

local M = {}

---@type table<string, lcursor.OpenCommand>
local COMMANDS =
  { enter = "edit", ["ctrl-s"] = "split", ["ctrl-v"] = "vsplit", ["ctrl-t"] = "tabedit" }

--- Return a class that previews the items of lines.
---@param item_of fun(line: string): lcursor.Item?
---@return table
local function previewer(item_of)
  local class = require("fzf-lua.previewer.builtin").buffer_or_file:extend()
  function class:parse_entry(line)
    local item = item_of(line)
    if not item then
      return {}
    elseif item.preview then
      return { content = item.preview, filetype = item.filetype }
    end
    return class.super.parse_entry(self, line)
  end
  function class.entry_to_file(_, line)
    local item = assert(item_of(line))
    return { path = item.file, bufnr = context.buffer(item.file), line = item.row + 1, col = 1 }
  end
  return class
end

--- Open a picker.
---@param name "search"|"chats"|"models"|"hunks"
---@param opts? table options of the picker
function M.open(name, opts)
  local source = sources.get(name)
  if not source then
    return
  end
  local fzf, color = require("fzf-lua"), require("fzf-lua.utils").ansi_from_hl
  ---@type lcursor.Item[] all that were found; each line begins with a number, which is hidden
  local items = {}
  local function item_of(line)
    return items[tonumber(line:match("^%d+"))]
  end
  local function find(query, write)
    source.find(query, function(found)
      for _, item in ipairs(found) do
        table.insert(items, item)
        local line = #items .. "\t"
        for _, cell in ipairs(item.cells) do
          line = line .. color(cell[2], (cell[1]:gsub("%c", " ")))
        end
        write(line)
      end
      write(nil)
    end)
  end
  local actions = {}
  for key, command in pairs(COMMANDS) do
    actions[key] = function(lines)
      local item = lines[1] and item_of(lines[1])
      if item then
        item.confirm(command)
      end
    end
  end
  opts = vim.tbl_deep_extend("force", {
    prompt = source.title .. "> ",
    actions = actions,
    previewer = source.preview and {
      _ctor = function()
        return previewer(item_of)
      end,
    } or false,
    fzf_opts = { ["--delimiter"] = "\t", ["--with-nth"] = "2..", ["--no-multi"] = true },
  }, opts or {})
  if source.is_live then
    fzf.fzf_live(function(args)
      return function(write)
        find(args[1] or "", write)
      end
    end, opts)
  else
    fzf.fzf_exec(function(write)
      find("", write)
    end, opts)
  end
end

return M
