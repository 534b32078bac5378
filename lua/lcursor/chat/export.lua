-- Exports a chat as a Markdown file.

local format = require("lcursor.chat.format")
local notify = require("lcursor.ui.notify")
local ui = require("lcursor.ui.window")

local M = {}

---@return string[]
local function to_markdown(title, messages)
  local lines = { "# " .. (title ~= "" and title or "Chat"), "" }
  for _, message in ipairs(messages) do
    local heading = format.HEADINGS[message.role]
    if message.role == "assistant" and message.model ~= "" then
      heading = ("%s (%s)"):format(heading, message.model)
    end
    vim.list_extend(lines, { heading, "" })
    local names = {}
    for _, item in ipairs(format.attached(message.items)) do
      if not item.is_left_out then
        table.insert(names, ("> %s: %s"):format(item.kind, item.name))
      end
    end
    if #names > 0 then
      vim.list_extend(lines, names)
      table.insert(lines, "")
    end
    vim.list_extend(lines, vim.split(vim.trim(message.text), "\n", { plain = true }))
    if message.is_partial or message.why ~= "" then
      local why = message.why ~= "" and (": " .. message.why) or ""
      vim.list_extend(lines, { "", ("(incomplete%s)"):format(why) })
    end
    table.insert(lines, "")
  end
  table.remove(lines)
  return lines
end

---@return string
local function file_name(title)
  local words = vim.fn.tolower(title):gsub("…", " ")
  local name = words:gsub("[^%w\128-\255]+", "-"):gsub("^%-+", ""):gsub("%-+$", "")
  name = vim.fn.strcharpart(name, 0, 60)
  return (name ~= "" and name or "chat") .. ".md"
end

--- Write a chat to a file.
---@param title string
---@param messages lcursor.ChatMessage[]
---@param path string "" asks for it
function M.save(title, messages, path)
  if #messages == 0 then
    return notify.info("the chat is empty")
  end
  local function save_to(name)
    if not name or not name:find("%S") then
      return
    end
    local target = vim.fs.abspath(vim.fs.normalize(vim.trim(name)))
    local shown = vim.fn.fnamemodify(target, ":~:.")
    local function save()
      local ok, result = pcall(vim.fn.writefile, to_markdown(title, messages), target)
      if ok and result == 0 then
        return notify.info("exported to " .. shown)
      end
      local why = ok and "it cannot be written" or tostring(result):gsub("^.-:%s*", "")
      notify.warn(("%s: %s"):format(target, why))
    end
    if vim.uv.fs_stat(target) then
      return ui.confirm(shown .. " exists. Overwrite it?", save)
    end
    save()
  end
  if path ~= "" then
    return save_to(path)
  end
  local opts = { prompt = "Export to: ", default = file_name(title), completion = "file" }
  vim.ui.input(opts, save_to)
end

return M
