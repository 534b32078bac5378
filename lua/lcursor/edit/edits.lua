-- Edits as a whole: accept and reject all of one, show alternatives, retry, undo and redo, list.
-- The backend keeps them; this module asks it.

local apply = require("lcursor.edit.apply")
local ask = require("lcursor.edit.ask")
local buffers = require("lcursor.edit.buffers")
local hunks = require("lcursor.edit.hunks")
local keymaps = require("lcursor.keymaps")
local notify = require("lcursor.notify")
local proposals = require("lcursor.edit.proposals")
local requests = require("lcursor.requests")
local list = require("lcursor.ui.list")
local text = require("lcursor.text")

local M = {}

local api = vim.api
local MAX_TITLE = 56

--- Reload the unmodified buffers of files that were written.
local function reload(paths)
  for _, path in ipairs(paths) do
    local buf = buffers.find(path)
    if buf and not vim.bo[buf].modified and vim.uv.fs_stat(path) then
      api.nvim_buf_call(buf, function()
        vim.cmd("silent! checktime")
      end)
    end
  end
end

--- Give a buffer the name that its file got, and its text as well, unless it has unsaved changes.
---@param is_modified boolean
local function rename(buf, to, is_modified)
  local target = buffers.find(to)
  if target and not pcall(api.nvim_buf_delete, target, {}) then
    local name = buffers.relative(to)
    return notify.warn(("%s is open with unsaved text, which is not in its new file"):format(name))
  end
  local from = api.nvim_buf_get_name(buf)
  api.nvim_buf_call(buf, function()
    api.nvim_buf_set_name(buf, to)
    if not is_modified then
      vim.cmd("silent! edit!") -- the text is what was written
    end
  end)
  for _, other in ipairs(api.nvim_list_bufs()) do -- renaming leaves one with the old name
    if other ~= buf and api.nvim_buf_get_name(other) == from then
      pcall(api.nvim_buf_delete, other, {})
    end
  end
end

--- Let the buffer of a deleted or renamed file follow it.
local function follow(file)
  local buf = buffers.find(file.path)
  if buf and file.kind == "delete" then
    pcall(api.nvim_buf_delete, buf, {}) -- not where it was changed since
  elseif buf and file.kind == "rename" then
    rename(buf, file.to, vim.bo[buf].modified)
  end
end

--- Shorten a path at the beginning of a message: messages longer than a line are cut.
---@param problem string
---@return string
local function relative(problem)
  local here = (vim.uv.cwd() or "") .. "/"
  return vim.startswith(problem, here) and problem:sub(#here + 1) or problem
end

---@param is_outside boolean whether files outside of the project are changed, too
local function accept(proposal, is_outside)
  local paths, problems = hunks.accept_loaded(proposal)
  if #problems > 0 then
    notify.warn(table.concat(problems, "; "))
  end
  if #paths == 0 then
    return
  end
  local params = { turn = proposal.key, paths = paths, outside = is_outside }
  requests.ask("edit.write", params, function(answer)
    if answer.problem ~= "" then
      return notify.warn("nothing was written to files: " .. relative(answer.problem))
    end
    proposals.written(proposal.key, paths)
    for _, part in ipairs(proposal.parts) do
      if vim.list_contains(paths, part.file.path) then
        follow(part.file)
      end
    end
    reload(paths)
    notify.info(
      ("%s written; :LCursor edit undo undoes the edit"):format(text.many(#paths, "file"))
    )
  end)
end

---@type string? what the user was shown of files that accepting all would change on the disk
local announced

--- Show which files accepting all of a proposal changes on the disk, the first time.
---@param names string[]
---@return boolean whether they were shown at this place before
local function are_known(proposal, names)
  local buf, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1]
  local named = table.concat(names, ", ")
  local now = ("%s %d %d %s"):format(proposal.key, buf, row, named)
  if #names == 0 or announced == now then
    announced = nil
    return true
  end
  announced = now
  local lhs = keymaps.is_mapped("hunk", buf) and keymaps.shown("hunk", "accept_all", buf)
  local hint = (lhs or ":LCursor hunk accept all") .. " again accepts all"
  notify.info("this changes files on the disk: " .. named, hint)
  return false
end

local DONE = { create = " (new)", delete = " (deleted)" }

--- Accept all hunks of a proposal: changed buffers stay to be saved, files that are not loaded are
--- written once the user was shown their names; those that run code by themselves are left out, but
--- not a single open one.
---@param proposal lcursor.EditProposal
function M.accept(proposal)
  local names, is_outside = {}, false
  local pending = vim.tbl_filter(proposals.is_pending, proposal.parts)
  for _, part in ipairs(pending) do
    local file, is_whole = part.file, proposals.is_whole(part)
    local is_on_disk = is_whole or not part.buf
    if is_on_disk and not hunks.is_left_out(part, #pending) then
      if is_whole and part.buf and vim.bo[part.buf].modified then
        return notify.warn(("save %s first: it is moved or removed"):format(file.name))
      end
      local target = file.kind == "rename" and buffers.find(file.to)
      if target and vim.bo[target].modified then
        local why = "close %s first: it has unsaved text, and %s gets its name"
        return notify.warn(why:format(buffers.relative(file.to), file.name))
      end
      local name = file.name
      if file.kind == "rename" then
        name = ("%s → %s"):format(name, buffers.relative(file.to))
      end
      name = name .. (DONE[file.kind] or "") .. (file.is_outside and " (outside the project)" or "")
      is_outside = is_outside or file.is_outside
      table.insert(names, name)
    end
  end
  if are_known(proposal, names) then
    accept(proposal, is_outside)
  end
end

--- Reject all hunks of a proposal.
---@param proposal lcursor.EditProposal
function M.reject(proposal)
  hunks.reject_all(proposal)
end

--- Show another one of the alternatives; after the last one, ask for one more.
---@param proposal lcursor.EditProposal
---@param by integer
function M.cycle(proposal, by)
  local all, index = proposals.alternatives(proposal), 1
  for i, one in ipairs(all) do
    index = one == proposal and i or index
  end
  if by > 0 and index == #all then
    return ask.again(proposal, "")
  end
  local other = all[index + by]
  if not other then
    return notify.info("this is the first alternative")
  end
  proposals.show(other)
  notify.info(("alternative %d of %d"):format(index + by, #all))
end

--- Ask what is wrong with a proposal, and have it made again.
---@param proposal lcursor.EditProposal
function M.again(proposal)
  if not ask.origin(proposal) then
    return ask.again(proposal, "") -- says why not
  end
  local title = "what is wrong with it? (empty: another way)"
  local opts = { title = title, path = buffers.here(), may_be_empty = true }
  require("lcursor.edit.prompt").open(opts, function(remark)
    if remark then
      ask.again(proposal, remark)
    end
  end)
end

---@param answer table the fields of `edit.reverted`
local function on_reverted(answer)
  local is_undo = answer["do"] == "undo"
  if is_undo and answer.turn ~= "" then
    proposals.drop(answer.turn) -- before its hunks see that they are undone, and report it
  end
  local moved = {} ---@type { buf: integer, to: string, is_modified: boolean }[]
  for _, file in ipairs(answer.files) do
    local buf = file.kind == "rename" and buffers.find(file.path)
    if buf then
      table.insert(moved, { buf = buf, to = file.to, is_modified = vim.bo[buf].modified })
    end
  end
  local problems = vim.tbl_map(relative, answer.problems)
  vim.list_extend(problems, apply.change_files(answer.files))
  for _, each in ipairs(moved) do
    rename(each.buf, each.to, each.is_modified)
  end
  reload(answer.paths)
  local title = text.short(answer.title, MAX_TITLE)
  if #problems > 0 then
    local verb = is_undo and "undone" or "redone"
    local why = table.concat(problems, "; ")
    return notify.warn(('"%s" was only partly %s: %s'):format(title, verb, why))
  end
  local changed = vim.tbl_filter(function(file)
    return #file.changes > 0
  end, answer.files)
  local where = {}
  if #changed > 0 then
    table.insert(where, text.many(#changed, "buffer"))
  end
  if #answer.paths > 0 then
    table.insert(where, text.many(#answer.paths, "file"))
  end
  local words = #where > 0 and (" in " .. table.concat(where, " and ")) or ""
  notify.info(('%s "%s"%s'):format(is_undo and "undid" or "redid", title, words))
end

---@param row lcursor.EditTurnRow
---@param what "undo"|"redo"
local function revert(row, what, path)
  requests.ask("edit.revert", {
    ["do"] = what,
    path = path,
    turn = row.turn,
    buffers = buffers.loaded(row.paths),
  }, notify.guarded(on_reverted))
end

--- Undo or redo the last edit: in buffers and in files that are not loaded.
---@param what "undo"|"redo"
function M.revert(what)
  local path = buffers.here()
  requests.ask("edit.turns", { path = path }, function(listed)
    for _, row in ipairs(listed.turns) do
      if row.turn == listed[what] then
        return revert(row, what, path)
      end
    end
    notify.info("there is nothing to " .. what)
  end)
end

--- Open again what is open of an edit.
---@param row { turn: string, paths: string[] }
---@param path string absolute: of the project
---@param shown? fun(msg: lcursor.EditProposed) called instead of opening the list of hunks
function M.resume(row, path, shown)
  local params = { turn = row.turn, path = path, buffers = buffers.loaded(row.paths) }
  requests.ask("edit.resume", params, function(msg)
    require("lcursor.edit").receive(msg)
    if shown then
      shown(msg)
    elseif proposals.count() > 0 then
      require("lcursor.edit.quickfix").open()
    end
  end)
end

local GROUPS =
  { open = "LCursorEditTitle", done = "LCursorEditAdded", undone = "LCursorEditRemoved" }

---@param row lcursor.EditTurnRow
---@param width integer of the titles
---@return lcursor.Cells
local function cells(row, width)
  local state = row.state == "open" and ("%d open"):format(row.open) or row.state
  local paths = vim.tbl_map(buffers.relative, row.paths)
  local more = #paths > 3 and (" and %d more"):format(#paths - 3) or ""
  local title = text.short(row.title, MAX_TITLE)
  return {
    { ("  %-10s  "):format(text.ago(os.time() - row.at_s)), "LCursorEditBadge" },
    { ("%-8s  "):format(state), GROUPS[row.state] },
    { title .. (" "):rep(width - vim.fn.strdisplaywidth(title)) .. "  ", "Normal" },
    { table.concat(vim.list_slice(paths, 1, 3), ", ") .. more, "LCursorHitFile" },
  }
end

--- List the edits of the project in a window.
function M.list()
  local path = buffers.here()
  local opened = list.open("edits")
  local function fill(listed)
    local width = 0
    for _, row in ipairs(listed.turns) do
      width = math.max(width, vim.fn.strdisplaywidth(text.short(row.title, MAX_TITLE)))
    end
    local rows = vim.tbl_map(function(row)
      return cells(row, width)
    end, listed.turns)
    local head = text.many(#rows, "edit") .. " of this project"
    if #rows == 0 then
      rows = { { { "  no edit yet; :LCEdit asks for one", "LCursorEditBadge" } } }
    end
    local keys = "<CR> show, u undo, r redo, R refresh, q close"
    list.fill(opened, rows, listed.turns, head, keys)
  end
  local function load()
    requests.ask("edit.turns", { path = path }, fill)
  end
  --- Return a function that closes the list and does something with the edit under the cursor.
  local function on(run)
    return function()
      local row = list.here(opened)
      if row then
        list.close(opened)
        run(row)
      end
    end
  end
  local show = on(function(row)
    if proposals.get(row.turn) then
      return require("lcursor.edit.quickfix").open()
    end
    M.resume(row, path)
  end)
  list.map(opened, {
    ["<CR>"] = function()
      local row = list.here(opened)
      if row and row.open == 0 then
        return notify.info("it has no open hunks")
      end
      show()
    end,
    u = on(function(row)
      revert(row, "undo", path)
    end),
    r = on(function(row)
      revert(row, "redo", path)
    end),
    R = load,
  })
  list.fill(opened, { { { "  asking …", "LCursorEditBadge" } } }, {}, "edits", nil)
  load()
end

return M
