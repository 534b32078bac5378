-- Turns as a whole: taking and refusing all that came together, other ways of doing the same,
-- taking back and making again what was done, and the list of them. Python keeps them.

local direct = require("lcursor.edit.direct")
local notify = require("lcursor.notify")
local reader = require("lcursor.edit.reader")
local region = require("lcursor.edit.region")
local requests = require("lcursor.requests")
local sheet = require("lcursor.ui.list")
local store = require("lcursor.edit.store")
local ago = require("lcursor.text").ago
local short = require("lcursor.text").short
local words = require("lcursor.edit.words")

local M = {}

local api = vim.api
local MOST_TITLE = 56

--- Have the buffers of files that were written show what is on disk now, where nothing is lost.
---@param paths string[]
local function reread(paths)
  for _, path in ipairs(paths) do
    local buf = direct.buffer(path)
    if buf and not vim.bo[buf].modified and vim.uv.fs_stat(path) then
      api.nvim_buf_call(buf, function()
        vim.cmd("silent! checktime")
      end)
    end
  end
end

---@param file lcursor.EditFile
local function follow(file)
  local buf = direct.buffer(file.path)
  if not buf then
    return
  elseif file.kind == "delete" then
    pcall(api.nvim_buf_delete, buf, {}) -- not where it was changed since
  elseif file.kind == "rename" then
    api.nvim_buf_call(buf, function()
      api.nvim_buf_set_name(buf, file.to)
      vim.cmd("silent! edit!") -- it is what was written
    end)
    local old = vim.fn.bufnr("^" .. vim.fn.escape(file.path, "\\*?[{") .. "$")
    if old > 0 and old ~= buf then
      pcall(api.nvim_buf_delete, old, {})
    end
  end
end

--- What of a turn is not for a buffer: files that none has, and those that are moved or removed.
---@param turn lcursor.EditTurn
---@return lcursor.EditPart[]
local function unloaded(turn)
  return vim.tbl_filter(function(part)
    return part.state ~= "done"
      and (store.is_whole(part) or (not part.buf and store.open_in(part) > 0))
  end, turn.parts)
end

---@param parts lcursor.EditPart[]
---@return string[]
local function names(parts)
  return vim.tbl_map(function(part)
    local verb = part.file.kind == "edit" and "change" or part.file.kind
    local to = part.file.kind == "rename" and (" to " .. part.file.to) or ""
    return ("%s %s%s"):format(verb, part.file.name, to)
  end, parts)
end

---@param turn lcursor.EditTurn
---@param paths string[]
---@param is_outside boolean the user said yes to files outside of the project
local function write(turn, paths, is_outside)
  local files = vim.tbl_map(function(part)
    return part.file
  end, turn.parts)
  requests.ask(
    "edit.write",
    { turn = turn.key, paths = paths, outside = is_outside },
    function(said)
      if said.problem ~= "" then
        return notify.warn("nothing was written to files: " .. said.problem)
      end
      store.written(turn.key, paths)
      for _, file in ipairs(files) do
        if vim.list_contains(paths, file.path) then
          follow(file)
        end
      end
      reread(paths)
      notify.info(
        ("%s written; :LCursor undo takes the turn back"):format(words.many(#paths, "file"))
      )
    end
  )
end

---@param turn lcursor.EditTurn
---@param is_outside boolean the user agreed to change files outside of the project
local function accept(turn, is_outside)
  local whole = require("lcursor.edit.hunks").accept_turn(turn.key)
  if #whole.problems > 0 then
    notify.warn(table.concat(whole.problems, "; "))
  end
  if #whole.paths > 0 then
    write(turn, whole.paths, is_outside)
  end
end

--- Accept all hunks of a turn: those in buffers stay to be saved, those in files that no buffer has
--- are written. Asks first where a file is outside of the project.
---@param turn lcursor.EditTurn
function M.accept(turn)
  local parts = unloaded(turn)
  local changed = vim.tbl_filter(function(part)
    return part.buf and store.is_whole(part) and vim.bo[part.buf].modified
  end, parts)
  if #changed > 0 then
    return notify.warn(("save %s first: it is moved or removed"):format(changed[1].file.name))
  end
  local outside = vim.tbl_filter(function(part)
    return part.file.is_outside
  end, parts)
  if #outside == 0 then
    return accept(turn, false)
  end
  local prompt = ("Outside of the project: %s. Do it?"):format(table.concat(names(outside), ", "))
  vim.ui.select(
    { "Yes", "No" },
    { prompt = prompt },
    notify.guarded(function(choice)
      if choice ~= "Yes" then
        return notify.info("nothing was changed")
      end
      accept(turn, true)
    end)
  )
end

--- Refuse all of a turn.
---@param turn lcursor.EditTurn
function M.reject(turn)
  require("lcursor.edit.hunks").reject_turn(turn.key)
end

--- Show another one of the alternatives; behind the last one, ask for one more.
---@param turn lcursor.EditTurn
---@param by integer
function M.cycle(turn, by)
  local all = store.alternatives(turn)
  local at = 1
  for i, one in ipairs(all) do
    at = one == turn and i or at
  end
  if by > 0 and at == #all then
    return region.again(turn, "")
  end
  local other = all[at + by]
  if not other then
    return notify.info("this is the first one")
  end
  store.show(other)
  notify.info(("alternative %d of %d"):format(at + by, #all))
end

--- Have it made again, with what is wrong with it.
---@param turn lcursor.EditTurn
---@param remark? string nil: it is asked for
function M.again(turn, remark)
  if remark then
    return region.again(turn, remark)
  elseif not region.origin(turn) then
    return notify.info("this change cannot be tried again; ask for it anew with :LCEdit")
  end
  local title = "what is wrong with it? (empty: another way)"
  local opts = { title = title, path = reader.here(), is_empty_fine = true }
  require("lcursor.edit.ask").open(opts, function(text)
    if text then
      region.again(turn, text)
    end
  end)
end

--- What begins with the path of a file, with as little of that as says which it is: a message is
--- cut where it is longer than a line.
---@param problem string
---@return string
local function nearby(problem)
  local here = (vim.uv.cwd() or "") .. "/"
  return vim.startswith(problem, here) and problem:sub(#here + 1) or problem
end

---@param told table the fields of `edit.reverted`
local function reverted(told)
  local problems = vim.tbl_map(nearby, told.problems)
  local buffers = vim.tbl_filter(function(file)
    return #file.changes > 0
  end, told.files)
  if told["do"] == "undo" and told.turn ~= "" then
    store.drop(told.turn) -- before its hunks see that they are taken back, and say so
  end
  vim.list_extend(problems, direct.apply(told.files))
  reread(told.paths)
  local what = {}
  if #buffers > 0 then
    table.insert(what, words.many(#buffers, "buffer"))
  end
  if #told.paths > 0 then
    table.insert(what, words.many(#told.paths, "file"))
  end
  local verb = told["do"] == "undo" and "taken back" or "made again"
  if #problems > 0 then
    local text = table.concat(problems, "; ")
    return notify.warn(
      ('"%s" is not %s as a whole: %s'):format(short(told.title, MOST_TITLE), verb, text)
    )
  end
  local where = #what > 0 and (" in " .. table.concat(what, " and ")) or ""
  notify.info(('"%s" is %s%s'):format(short(told.title, MOST_TITLE), verb, where))
end

---@param row lcursor.EditTurnRow
---@param what "undo"|"redo"
---@param path string
local function revert(row, what, path)
  requests.ask("edit.revert", {
    ["do"] = what,
    path = path,
    turn = row.turn,
    buffers = reader.loaded(row.paths),
  }, notify.guarded(reverted))
end

--- Take the last turn back, or make it again: in buffers and in files that no buffer has.
---@param what "undo"|"redo"
function M.revert(what)
  local path = reader.here()
  requests.ask("edit.turns", { path = path }, function(listed)
    for _, row in ipairs(listed.turns) do
      if row.turn == listed[what] then
        return revert(row, what, path)
      end
    end
    notify.info(what == "undo" and "there is nothing to take back" or "there is nothing to redo")
  end)
end

--- Have the open hunks of a turn again.
---@param row lcursor.EditTurnRow
---@param path string absolute: of the project
function M.resume(row, path)
  local params = { turn = row.turn, path = path, buffers = reader.loaded(row.paths) }
  requests.ask("edit.resume", params, function(msg)
    require("lcursor.edit").take(msg)
    if store.count() > 0 then
      require("lcursor.edit.quickfix").open()
    end
  end)
end

---@param row lcursor.EditTurnRow
---@param width integer
---@return lcursor.Cells
local function cells(row, width)
  local groups =
    { open = "LCursorEditTitle", done = "LCursorEditAdded", undone = "LCursorEditRemoved" }
  local state = row.state == "open" and ("%d open"):format(row.open) or row.state
  local shown = vim.tbl_map(reader.shown, row.paths)
  local files = table.concat(vim.list_slice(shown, 1, 3), ", ")
  local more = #shown > 3 and (" and %d more"):format(#shown - 3) or ""
  local title = short(row.title, MOST_TITLE)
  return {
    { ("  %-10s  "):format(ago(os.time() - row.at_s)), "LCursorEditBadge" },
    { ("%-8s  "):format(state), groups[row.state] },
    { title .. (" "):rep(width - vim.fn.strdisplaywidth(title)) .. "  ", "Normal" },
    { files .. more, "LCursorHitFile" },
  }
end

--- Show the turns of the project.
function M.list()
  local path = reader.here()
  local opened = sheet.open("edits")
  local function ask()
    requests.ask("edit.turns", { path = path }, function(listed)
      local width = 0
      for _, row in ipairs(listed.turns) do
        width = math.max(width, vim.fn.strdisplaywidth(short(row.title, MOST_TITLE)))
      end
      local rows = vim.tbl_map(function(row)
        return cells(row, width)
      end, listed.turns)
      local head = words.many(#rows, "edit") .. " of this project"
      if #rows == 0 then
        rows = { { { "  no edit yet; :LCEdit asks for one", "LCursorEditBadge" } } }
      end
      local help = "<CR> shows what is open, u takes back, r makes again, R reads anew, q closes"
      sheet.fill(opened, rows, listed.turns, head, help)
    end)
  end
  local function on(what)
    return function()
      local row = sheet.here(opened)
      if row then
        sheet.close(opened)
        revert(row, what, path)
      end
    end
  end
  sheet.map(opened, {
    ["<CR>"] = function()
      local row = sheet.here(opened)
      if not row then
        return
      elseif row.open == 0 then
        return notify.info("nothing of it is open")
      end
      sheet.close(opened)
      if store.turn(row.turn) then
        return require("lcursor.edit.quickfix").open()
      end
      M.resume(row, path)
    end,
    u = on("undo"),
    r = on("redo"),
    R = ask,
  })
  sheet.fill(opened, { { { "  asking …", "LCursorEditBadge" } } }, {}, "edits", nil)
  ask()
end

return M
