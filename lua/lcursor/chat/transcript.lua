-- A chat as a markdown file: what was said, and by name what was attached. The text is made by pure
-- functions; the file is written only where there is none yet, or the user says so.

local notify = require("lcursor.notify")
local window = require("lcursor.ui.window")
local words = require("lcursor.chat.words")

local M = {}

--- A chat as markdown; each answer says whose it is, where that is known.
---@param title string
---@param messages lcursor.ChatMessage[]
---@return string[]
function M.lines(title, messages)
  local lines = { "# " .. (title ~= "" and title or "Chat"), "" }
  for _, message in ipairs(messages) do
    local heading = words.HEADINGS[message.role]
    if message.role == "assistant" and message.model ~= "" then
      heading = ("%s (%s)"):format(heading, message.model)
    end
    vim.list_extend(lines, { heading, "" })
    local items = vim.tbl_filter(function(item)
      return not item.is_left_out
    end, words.shown(message.items))
    for _, item in ipairs(items) do
      table.insert(lines, ("> %s: %s"):format(item.kind, item.name))
    end
    if #items > 0 then
      table.insert(lines, "")
    end
    vim.list_extend(lines, vim.split(vim.trim(message.text), "\n", { plain = true }))
    if message.is_partial then
      local why = message.why ~= "" and (": " .. message.why) or ""
      vim.list_extend(lines, { "", ("(not complete%s)"):format(why) })
    end
    table.insert(lines, "")
  end
  table.remove(lines)
  return lines
end

--- A name for the file of a chat.
---@param title string
---@return string
function M.name(title)
  local said = vim.fn.tolower(title):gsub("…", " ") -- a long title ends so
  local name = said:gsub("[^%w\128-\255]+", "-"):gsub("^%-+", ""):gsub("%-+$", "")
  name = vim.fn.strcharpart(name, 0, 60)
  return (name ~= "" and name or "chat") .. ".md"
end

---@param path string
---@param lines string[]
local function write(path, lines)
  local ok, result = pcall(vim.fn.writefile, lines, path)
  if not ok or result ~= 0 then
    local why = ok and "it cannot be written" or tostring(result):gsub("^.-:%s*", "")
    return notify.warn(("%s: %s"):format(path, why))
  end
  notify.info(("the chat is in %s"):format(vim.fn.fnamemodify(path, ":~:.")))
end

--- Write a chat into a file; asks for its name where none is given.
---@param title string
---@param messages lcursor.ChatMessage[]
---@param path string "" to be asked
function M.save(title, messages, path)
  if #messages == 0 then
    return notify.info("nothing was said in this chat yet")
  end
  local lines = M.lines(title, messages)
  local function to(name)
    if not name or not name:find("%S") then
      return
    end
    local target = vim.fs.abspath(vim.fs.normalize(vim.trim(name)))
    local is_there = vim.uv.fs_stat(target) ~= nil
    local question = ("%s is there already. Overwrite it?"):format(
      vim.fn.fnamemodify(target, ":~:.")
    )
    local function save()
      write(target, lines)
    end
    if is_there then
      window.confirm(question, save)
    else
      save()
    end
  end
  if path ~= "" then
    return to(path)
  end
  local default = M.name(title)
  vim.ui.input({ prompt = "Export to: ", default = default, completion = "file" }, to)
end

return M
