-- `:LCursor search`: asks, and shows what was found in the quickfix list or by vim.ui.select; the
-- window that searches while one types is picker.lua.

local buffers = require("lcursor.index.buffers")
local config = require("lcursor.config")
local context = require("lcursor.context")
local hits = require("lcursor.index.hits")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")

local M = {}

local api = vim.api

---@type integer? id of the request whose answer is awaited
local asked

--- Forget the search whose answer is awaited.
function M.forget()
  requests.forget(asked)
end

--- Ask for what a text is about; `@name` asks for definitions.
---@param path string absolute, in the project
---@param text string
---@param done fun(found: lcursor.IndexFound)
function M.ask(path, text, done)
  M.forget()
  buffers.flush()
  local limit = config.get().index.limit
  local name = text:match("^%s*@%s*(.-)%s*$")
  if name then
    local params = { path = path, name = name, limit = limit }
    asked = requests.ask("index.symbols", params, done)
    return
  end
  local params = { path = path, text = text, limit = limit, mode = "hybrid" }
  asked = requests.ask("index.search", params, done)
end

--- Put what was found into the quickfix list, and open it unless the user is typing.
---@param found lcursor.IndexFound
---@param is_wanted? boolean open it in any case
function M.quickfix(found, is_wanted)
  local note = found.note ~= "" and (" (%s)"):format(found.note) or ""
  if #found.hits == 0 then
    return notify.info(("nothing found for %s%s"):format(found.query, note))
  end
  vim.fn.setqflist({}, " ", {
    title = ":LCursor search " .. found.query,
    items = hits.quickfix(found),
  })
  local words = ("%d found for %s in %.0f ms%s"):format(#found.hits, found.query, found.ms, note)
  if is_wanted or api.nvim_get_mode().mode:find("^n") then
    vim.cmd("botright copen")
    notify.info(words)
  else
    notify.info(words .. "; see :copen")
  end
end

--- Go to a place.
---@param hit lcursor.IndexHit
---@param row integer 0-based
---@param how? "edit"|"split"|"vsplit"|"tabedit"
function M.jump(hit, row, how)
  how = how or "edit"
  vim.cmd("normal! m'")
  local buf = vim.fn.bufnr("^" .. vim.fn.escape(hit.path, "\\*?[{") .. "$")
  local is_shown = how == "edit" and buf == api.nvim_get_current_buf()
  if not is_shown then
    local ok, err = pcall(vim.cmd[how], { vim.fn.fnameescape(vim.fn.fnamemodify(hit.path, ":.")) })
    if not ok then
      return notify.warn(("cannot open %s: %s"):format(hit.name, (tostring(err):gsub("^.-:", ""))))
    end
  end
  local last = api.nvim_buf_line_count(0)
  api.nvim_win_set_cursor(0, { math.min(row + 1, last), 0 })
  vim.cmd("normal! ^zvzz")
end

--- Ask for words, then let the user choose with whatever `vim.ui` they have.
---@param path string
function M.select(path)
  vim.ui.input({ prompt = "Search: " }, function(text)
    if not text or not text:find("%S") then
      return
    end
    M.ask(path, text, function(found)
      local words = hits.words(text)
      local opts = {
        prompt = "Search: " .. text,
        kind = "lcursor.hits",
        format_item = function(hit)
          return hits.line(hit, words)
        end,
      }
      if #found.hits == 0 then
        return M.quickfix(found)
      end
      vim.ui.select(found.hits, opts, function(hit)
        if hit then
          M.jump(hit, (hits.best_line(hit, words)))
        end
      end)
    end)
  end)
end

--- `:LCursor search {text}`; without a text a window to type into.
---@param text string
function M.run(text)
  local path = context.here()
  if text:find("%S") then
    M.ask(path, text, M.quickfix)
  elseif config.get().index.picker == "select" then
    M.select(path)
  else
    require("lcursor.index.picker").open(path)
  end
end

return M
