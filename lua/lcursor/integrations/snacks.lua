-- Sources for snacks.picker: require("lcursor.integrations.snacks").open("search").

local context = require("lcursor.editor.context")
local notify = require("lcursor.ui.notify")
local sources = require("lcursor.integrations.sources")
local text = require("lcursor.text")

local M = {}

---@type table<string, lcursor.OpenCommand>
local COMMANDS = { split = "split", vsplit = "vsplit", tab = "tabedit" }

---@param item lcursor.Item
---@return table
local function entry_of(item)
  local code = item.preview and table.concat(item.preview, "\n")
  return {
    text = text.of_cells(item.cells),
    file = item.file,
    buf = item.file and context.buffer(item.file),
    pos = item.row and { item.row + 1, 0 },
    end_pos = item.row and { item.end_row, 0 },
    preview = code and { text = code, ft = item.filetype, loc = false },
    item = item,
  }
end

--- Return a finder. It runs in a coroutine that libuv resumes, so it may call few functions of
--- Neovim; the source runs on the main loop.
---@param source lcursor.Source
---@return fun(opts: table, ctx: table): fun(add: fun(entry: table))
local function finder(source)
  return function(_, ctx)
    local query = ctx.filter.search
    return function(add)
      local async, entries = ctx.async, nil
      vim.schedule(notify.guarded(function()
        source.find(query, function(found)
          entries = vim.tbl_map(entry_of, found)
          async:resume()
        end)
      end))
      while not entries do
        async:suspend()
      end
      for _, entry in ipairs(entries) do
        add(entry)
      end
    end
  end
end

--- Open a picker.
---@param name "search"|"chats"|"models"|"hunks"
---@param opts? table options of the picker
function M.open(name, opts)
  local source = sources.get(name)
  if not source then
    return
  end
  local defaults = {
    title = source.title,
    live = source.is_live,
    supports_live = source.is_live,
    finder = finder(source),
    preview = source.preview == "text" and "preview" or "file",
    layout = not source.preview and "select" or nil,
    format = function(entry)
      return entry.item.cells
    end,
    confirm = function(picker, entry, action)
      picker:close()
      if entry then
        vim.schedule(notify.guarded(function()
          entry.item.confirm(COMMANDS[action.cmd])
        end))
      end
    end,
  }
  require("snacks").picker.pick(vim.tbl_deep_extend("force", defaults, opts or {}))
end

return M
