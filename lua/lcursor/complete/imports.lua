-- Finds the files that a file imports, from the paths in its text: no language server, no file
-- access. The paths may not exist.

local M = {}

---@class (exact) lcursor.Import
---@field paths string[] possible paths, the likeliest first
---@field symbols string[] what is imported from it; empty if unknown

local join = vim.fs.joinpath

---@param words string for example "a, b as c"
---@param alias string pattern before another name
---@return string[]
local function names(words, alias)
  local found = {}
  for word in vim.gsplit(words, ",", { plain = true }) do
    local name = vim.trim(word:gsub("#[^\n]*", "")):gsub(alias .. ".*$", ""):match("[%w_.]+")
    if name then
      table.insert(found, name)
    end
  end
  return found
end

---@return string[] folders in which absolute names may begin
local function bases(dir, root)
  local found = { root, join(root, "src") }
  while #dir > #root and vim.startswith(dir, root) do
    table.insert(found, dir)
    dir = vim.fs.dirname(dir)
  end
  return found
end

---@alias lcursor.AddImport fun(paths: string[], symbols?: string[])

---@param add lcursor.AddImport
---@param folders string[]
---@param module string with dots
local function add_python(add, folders, module, symbols)
  local path = module:gsub("%.", "/")
  local paths, inner = {}, {}
  for _, folder in ipairs(folders) do
    if path ~= "" then
      table.insert(paths, join(folder, path .. ".py"))
    end
    table.insert(paths, join(folder, path, "__init__.py"))
    for _, symbol in ipairs(symbols) do
      inner[symbol] = inner[symbol] or {}
      table.insert(inner[symbol], join(folder, path, symbol .. ".py"))
    end
  end
  add(paths, symbols)
  for _, symbol in ipairs(symbols) do -- it may be a module itself
    add(inner[symbol])
  end
end

---@type table<string, fun(text: string, dir: string, root: string, add: lcursor.AddImport)>
local rules = {}

function rules.python(text, dir, root, add)
  text = ("\n" .. text):gsub("%(([^)]*)%)", function(inner) -- names over several lines
    return " " .. inner:gsub("#[^\n]*", ""):gsub("%s+", " ")
  end)
  for dots, module, words in text:gmatch("\n[ \t]*from%s+(%.*)([%w_.]*)%s+import%s+([^\n]+)") do
    local folders = bases(dir, root)
    if dots ~= "" then
      local folder = dir
      for _ = 2, #dots do
        folder = vim.fs.dirname(folder)
      end
      folders = { folder }
    end
    add_python(add, folders, module, names(words, "%s+as%s"))
  end
  for words in text:gmatch("\n[ \t]*import%s+([^\n]+)") do
    for _, module in ipairs(names(words, "%s+as%s")) do
      add_python(add, bases(dir, root), module, {})
    end
  end
end

function rules.lua(text, dir, root, add)
  for module in text:gmatch("require%s*%(?%s*[\"']([%w_./-]+)[\"']") do
    local path, paths = module:gsub("%.", "/"), {}
    for _, folder in ipairs({ join(root, "lua"), root, dir }) do
      vim.list_extend(paths, { join(folder, path .. ".lua"), join(folder, path, "init.lua") })
    end
    add(paths)
  end
end

local SCRIPTS = { ".ts", ".tsx", ".js", ".jsx", ".mjs", "/index.ts", "/index.tsx", "/index.js" }

function rules.javascript(text, dir, _, add)
  local function add_script(words, spec)
    local braced = words:match("^%s*{(.*)}%s*$") or words:match("^%s*type%s*{(.*)}%s*$")
    local path = vim.fs.normalize(join(dir, spec))
    local stem, paths = path:gsub("%.[cm]?[jt]sx?$", ""), { path }
    for _, ending in ipairs(SCRIPTS) do
      table.insert(paths, stem .. ending)
    end
    add(paths, braced and names((braced:gsub("type%s+", "")), "%s+as%s"))
  end
  for words, spec in text:gmatch("import%s+([^;\"']-)%s*from%s*[\"'](%.[^\"']*)[\"']") do
    add_script(words, spec)
  end
  local required = "[nrt]%s+([%w_{}, \n]-)%s*=%s*require%(%s*[\"'](%.[^\"']*)[\"']"
  for words, spec in text:gmatch(required) do
    add_script(words, spec)
  end
end
rules.javascriptreact, rules.typescript = rules.javascript, rules.javascript
rules.typescriptreact = rules.javascript

function rules.go(text, _, root, add)
  for spec in text:gmatch('\n%s*[%w_.]*%s*"([%w_./-]+)"') do
    local segments, paths = vim.split(spec, "/", { plain = true }), {}
    for first = 2, #segments do -- how much of it names the module is in go.mod
      local folder = join(root, unpack(segments, first))
      table.insert(paths, join(folder, segments[#segments] .. ".go"))
    end
    add(paths)
  end
end

function rules.rust(text, dir, root, add)
  for start, spec in ("\n" .. text):gmatch("\n%s*[pub()crate ]*use%s+(%w+)::([^;]+);") do
    local folder = ({ crate = join(root, "src"), super = dir, self = dir })[start]
    local path, words = spec:match("^([%w_:]-):*{(.*)}%s*$")
    if not path then
      path, words = spec:match("^(.-):*([%w_*]+)%s*$")
    end
    if folder and path then
      local stem, paths = path:gsub("::", "/"), {}
      local symbols = vim.tbl_filter(function(name)
        return name ~= "self"
      end, names(words, "%s+as%s"))
      for _, symbol in ipairs(#symbols == 1 and symbols or {}) do -- it may be a module
        table.insert(paths, join(folder, stem, symbol .. ".rs"))
      end
      vim.list_extend(paths, { join(folder, stem .. ".rs"), join(folder, stem, "mod.rs") })
      add(paths, symbols)
    end
  end
  for name in ("\n" .. text):gmatch("\n%s*[pub()crate ]*mod%s+([%w_]+)%s*;") do
    add({ join(dir, name .. ".rs"), join(dir, name, "mod.rs") })
  end
end

--- The imports at the top of a file.
---@param text string its first lines
---@param dir string folder of the file
---@param root string folder of the project
---@return lcursor.Import[] empty for an unknown language
function M.of(text, filetype, dir, root)
  local found = {}
  if rules[filetype] then
    rules[filetype](text, dir, root, function(paths, symbols)
      table.insert(found, { paths = paths, symbols = symbols or {} })
    end)
  end
  return found
end

return M
