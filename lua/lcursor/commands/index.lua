-- `:LCursor index`.

--- Return a command that calls a function of index/report.lua with the current file.
---@param opts? table
---@return fun()
local function call(name, opts)
  return function()
    require("lcursor.index.report")[name](require("lcursor.editor.context").here(), opts)
  end
end

local function why(command)
  local path = command.text ~= "" and command.text or require("lcursor.editor.context").here()
  require("lcursor.index.report").why(path)
end

-- stylua: ignore
---@type lcursor.Noun
return {
  text = "The index of the project.",
  default = "status",
  is_enabled = function()
    return require("lcursor.index").is_enabled()
  end,
  verbs = {
    { "status", "Show its state, or what indexing would read.", call("show") },
    { "start", "Start indexing.", call("start") },
    { "rebuild", "Delete the index and start again.", call("start", { rebuild = true }) },
    { "why [path]", "Explain why a file is not indexed; without a path, the current one.", why,
      complete = "file" },
  },
}
