-- Edits as a whole: accept and reject all of one, show alternatives, retry, undo and redo, list.
-- The backend keeps them; this module asks it.

local apply = require("lcursor.edit.apply")
local ask = require("lcursor.edit.ask")
local buffers = require("lcursor.editor.buffers")
local hunks = require("lcursor.edit.hunks")
local keymaps = require("lcursor.editor.keymaps")
local notify = require("lcursor.ui.notify")
local proposals = require("lcursor.edit.proposals")
local requests = require("lcursor.host.requests")
local list = require("lcursor.ui.list")
local text = require("lcursor.text")

local M = {}

local api = vim.api
local MAX_TITLE = 56
local KINDS = { create = " (new)", delete = " (deleted)" } -- behind the name of a file

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

--- Write files of a proposal that no buffer has, and let their buffers follow.
---@param parts lcursor.EditPart[]
local function write(proposal, parts)
  if #parts == 0 then
    return
  end
  local paths = vim.tbl_map(function(part)
    return part.file.path
  end, parts)
  local is_outside = vim.iter(parts):any(function(part)
    return part.file.is_outside
  end)
  local params = { turn = proposal.key, paths = paths, outside = is_outside }
  requests.ask("edit.write", params, function(answer)
    if answer.problem ~= "" then
      return notify.warn("nothing was written to files: " .. relative(answer.problem))
    end
    proposals.written(proposal.key, paths)
    for _, part in ipairs(parts) do
      follow(part.file)
    end
    reload(paths)
    notify.info(
      ("%s written; :LCursor edit undo undoes the edit"):format(text.many(#paths, "file"))
    )
  end)
end

---@type string? the files on the disk that were named last, and where the cursor was
local announced

--- Name the files on the disk that accepting all of a proposal changes, the first time.
---@param names string[]
---@return boolean whether there are none, or they were named at this place before
local function were_named(proposal, names)
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

--- Describe what accepting does to a file on the disk.
---@param part lcursor.EditPart
---@return string
local function describe(part)
  local file, name = part.file, part.file.name
  if file.kind == "rename" then
    name = ("%s → %s"):format(name, buffers.relative(file.to))
  end
  return name .. (KINDS[file.kind] or "") .. (file.is_outside and " (outside the project)" or "")
end

--- Return why a file cannot be moved or removed: a buffer has unsaved text of it.
---@param part lcursor.EditPart
---@return string?
local function unsaved(part)
  local file = part.file
  local target = file.kind == "rename" and buffers.find(file.to)
  if part.buf and vim.bo[part.buf].modified then
    return ("save %s first: it is moved or removed"):format(file.name)
  elseif target and vim.bo[target].modified then
    local why = "close %s first: it has unsaved text, and %s gets its name"
    return why:format(buffers.relative(file.to), file.name)
  end
end

--- Return whether accepting all leaves a file out, since it runs code by itself: unless it is the
--- current buffer, and either nothing else was proposed, or it is renamed and nothing else is left.
---@param part lcursor.EditPart
---@param count integer of parts that are pending
---@return boolean
local function is_left_out(part, count)
  local is_alone = #part.proposal.parts == 1 or (count == 1 and proposals.is_whole(part))
  return part.file.is_guarded and not (is_alone and part.buf == api.nvim_get_current_buf())
end

--- Sort what is open of a proposal by where it is accepted.
---@param proposal lcursor.EditProposal
---@return lcursor.EditPart[] loaded in buffers
---@return lcursor.EditPart[] on_disk in files: no buffer has all of it
---@return lcursor.EditPart[] left_out nowhere, since they run code by themselves
local function by_destination(proposal)
  local pending = vim.tbl_filter(proposals.is_pending, proposal.parts)
  local loaded, on_disk, left_out = {}, {}, {}
  for _, part in ipairs(pending) do
    local is_on_disk = proposals.is_whole(part) or not part.buf
    local some = is_left_out(part, #pending) and left_out or is_on_disk and on_disk or loaded
    table.insert(some, part)
  end
  return loaded, on_disk, left_out
end

--- Say which files were left out, and how they are accepted.
---@param parts lcursor.EditPart[]
---@param is_rest boolean whether nothing else is open
---@return string? nil if there are none
local function describe_left_out(parts, is_rest)
  if #parts == 0 then
    return nil
  end
  local names = vim.tbl_map(function(part)
    return part.file.name
  end, parts)
  local is_renamed = is_rest and #parts == 1 and parts[1].file.kind == "rename"
  local text_of = "left out, since it runs code by itself: %s. Open it, :LCursor hunk accept %s"
  return text_of:format(table.concat(names, ", "), is_renamed and "all" or "file")
end

--- Accept all hunks of a proposal. Changed buffers stay to be saved; files that are not loaded are
--- written once the user was shown their names; those that run code by themselves are left out, but
--- not a single open one.
---@param proposal lcursor.EditProposal
function M.accept(proposal)
  local loaded, on_disk, left_out = by_destination(proposal)
  for _, part in ipairs(on_disk) do
    local problem = unsaved(part)
    if problem then
      return notify.warn(problem)
    end
  end
  if not were_named(proposal, vim.tbl_map(describe, on_disk)) then
    return
  end
  local problems = { describe_left_out(left_out, #loaded + #on_disk == 0) }
  for _, part in ipairs(loaded) do
    local left, problem = hunks.accept_open(part.buf, part.hunks)
    table.insert(problems, left and ("%s: %s"):format(part.file.name, left) or problem)
  end
  if #problems > 0 then
    notify.warn(table.concat(problems, "; "))
  end
  write(proposal, on_disk)
end

--- Reject all of a proposal that is still open.
---@param proposal lcursor.EditProposal
function M.reject(proposal)
  local left = {}
  for _, part in ipairs(proposal.parts) do
    local open_hunks = vim.tbl_filter(proposals.is_open, part.hunks)
    vim.list_extend(left, open_hunks)
    if proposals.is_whole(part) and part.state ~= "done" then
      part.state = "done"
      if #open_hunks == 0 then
        proposals.report(part, {}, {}, false)
      end
    end
  end
  apply.reject(left)
end

--- Show another one of the alternatives; after the last one, ask for one more, or show the first
--- one of an agent's attempts.
---@param proposal lcursor.EditProposal
---@param by integer
function M.cycle(proposal, by)
  local all, index = proposals.alternatives(proposal), 1
  for i, one in ipairs(all) do
    index = one == proposal and i or index
  end
  local is_asked = ask.origin(proposal) ~= nil
  if by > 0 and index == #all and (is_asked or #all == 1) then
    return ask.again(proposal, "")
  end
  index = is_asked and index + by or (index - 1 + by) % #all + 1
  if not all[index] then
    return notify.info("this is the first alternative")
  end
  proposals.show(all[index])
  notify.info(("alternative %d of %d"):format(index, #all))
end

--- Ask what is wrong with a proposal, and have it made again.
---@param proposal lcursor.EditProposal
function M.again(proposal)
  if not ask.origin(proposal) then
    return ask.again(proposal, "") -- says why not
  end
  local title = "what is wrong with it? (empty: another way)"
  local opts = { title = title, path = buffers.here(), may_be_empty = true }
  require("lcursor.editor.input").open(opts, function(remark)
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
---@return lcursor.Cells
local function cells_of(row)
  local state = row.state == "open" and ("%d open"):format(row.open) or row.state
  local paths = vim.tbl_map(buffers.relative, row.paths)
  local more = #paths > 3 and (" and %d more"):format(#paths - 3) or ""
  return {
    { ("  %-10s  "):format(text.ago(os.time() - row.at_s)), "LCursorEditBadge" },
    { ("%-8s  "):format(state), GROUPS[row.state] },
    { text.short(row.title, MAX_TITLE) .. "  ", "Normal" },
    { table.concat(vim.list_slice(paths, 1, 3), ", ") .. more, "LCursorHitFile" },
  }
end

--- List the edits of the project in a window.
function M.list()
  local path = buffers.here()
  local function show(row, opened)
    if row.open == 0 then
      return notify.info("it has no open hunks")
    end
    list.close(opened)
    if proposals.get(row.turn) then
      return require("lcursor.edit.quickfix").open()
    end
    M.resume(row, path)
  end
  local function on_row(what)
    return function(row)
      revert(row, what, path)
    end
  end
  list.open({
    name = "edits",
    cells = cells_of,
    head = function(rows)
      return text.many(#rows, "edit") .. " of this project"
    end,
    load = function(done)
      requests.ask("edit.turns", { path = path }, function(listed)
        done(listed.turns)
      end)
    end,
    empty = "no edit yet; :LCEdit asks for one",
    keys = {
      { "<CR>", "show", show },
      { "u", "undo", on_row("undo"), closes = true },
      { "r", "redo", on_row("redo"), closes = true },
      { "R", "refresh", list.load, on = "list" },
    },
  })
end

return M
