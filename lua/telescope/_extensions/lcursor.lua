-- Sources for Telescope: `:Telescope lcursor search`.

local action_set = require("telescope.actions.set")
local action_state = require("telescope.actions.state")
local actions = require("telescope.actions")
local channel = require("plenary.async.control").channel
local config = require("telescope.config").values
local finders = require("telescope.finders")
local highlighter = require("telescope.previewers.utils").highlighter
local notify = require("lcursor.ui.notify")
local pickers = require("telescope.pickers")
local previewers = require("telescope.previewers")
local sorters = require("telescope.sorters")
local sources = require("lcursor.integrations.sources")
local text = require("lcursor.text")

---@type table<string, lcursor.OpenCommand>
local COMMANDS = { horizontal = "split", vertical = "vsplit", tab = "tabedit" }

---@param entry table
---@return string
---@return table highlights
local function display(entry)
  local marks, length = {}, 0
  for _, cell in ipairs(entry.value.cells) do
    table.insert(marks, { { length, length + #cell[1] }, cell[2] or "Normal" })
    length = length + #cell[1]
  end
  return entry.ordinal, marks
end

---@param item lcursor.Item
---@return table
local function entry_of(item)
  return {
    value = item,
    ordinal = text.of_cells(item.cells),
    display = display,
    filename = item.file,
    lnum = item.row and item.row + 1,
    lnend = item.end_row,
    text = item.text,
  }
end

---@param source lcursor.Source
---@return table
local function finder(source, items)
  if not source.is_live then
    return finders.new_table({ results = items, entry_maker = entry_of })
  end
  return finders.new_dynamic({
    entry_maker = entry_of,
    fn = function(query)
      local send, receive = channel.oneshot()
      source.find(query, send)
      return receive()
    end,
  })
end

---@param source lcursor.Source
---@return table?
local function previewer(source, opts)
  if source.preview == "file" then
    return config.grep_previewer(opts)
  end
  return source.preview
    and previewers.new_buffer_previewer({
      define_preview = function(self, entry)
        vim.api.nvim_buf_set_lines(self.state.bufnr, 0, -1, false, entry.value.preview)
        highlighter(self.state.bufnr, entry.value.filetype)
      end,
    })
end

---@param buf integer
---@param how "default"|"horizontal"|"vertical"|"tab"
local function confirm(buf, how)
  local entry = action_state.get_selected_entry()
  actions.close(buf)
  if entry then
    notify.guarded(entry.value.confirm)(COMMANDS[how])
  end
end

---@param name string
---@return fun(opts?: table) open a picker
local function open(name)
  return function(opts)
    local source = sources.get(name)
    local function show(items)
      pickers
        .new(opts or {}, {
          prompt_title = source.title,
          finder = finder(source, items),
          previewer = previewer(source, opts or {}),
          sorter = source.is_live and sorters.empty() or config.generic_sorter(opts or {}),
          attach_mappings = function()
            action_set.select:replace(confirm)
            return true
          end,
        })
        :find()
    end
    if source and source.is_live then
      show()
    elseif source then
      source.find("", show)
    end
  end
end

local exports = {}
for _, name in ipairs(sources.names()) do
  exports[name] = open(name)
end

return require("telescope").register_extension({ exports = exports })
