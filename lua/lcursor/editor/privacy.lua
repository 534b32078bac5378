-- What is never read: files with names of secrets, files that contain a private key, buffers that
-- the option should_attach excludes, and files that git ignores. Git is asked once per file, for
-- many files at a time; until it has answered, and if it fails, the file is not read.

local attach = require("lcursor.editor.attach")
local boundary = require("lcursor.editor.boundary")
local config = require("lcursor.config")
local notify = require("lcursor.ui.notify")

local M = {}

local api = vim.api
local GIT_MS = 5000
local TIMED_OUT = 124 -- status that vim.system reports
local HEAD_LINES, HEAD_BYTES = 40, 4096 -- how much of a buffer is searched for a private key
local MAX_ENTRIES = 3000 -- of folders that are searched for other names of a file
local HOME = { ".", ".ssh", ".aws", ".azure", ".docker", ".gnupg", ".kube", ".config/gh" }
local OF_TOOLS = { [".git"] = true, [".venv"] = true, ["node_modules"] = true }

-- Messages for files that the user named.
M.REASONS = {
  secret = "its name says that it holds secrets",
  secret_link = "it is a hard link to a file whose name says that it holds secrets",
  secret_text = "it contains a private key",
}

---@class (exact) lcursor.Checked what is known of a file
---@field secret? "secret"|"secret_link"
---@field git "unknown"|"asked"|"ignored"|"fine"|"failed"
---@field failure? string message of git
---@field listeners fun()[] called when git has answered

---@type table<string, lcursor.Checked> by path and globs
local checked = {}

---@type table<string, string> what git answered -> code of complete/why.lua
local GIT_CODES = { ignored = "ignored", failed = "ignored_unknown" }

local PATTERNS = { ["*"] = [[\_.\*]], ["?"] = [[\_.]] }

--- Return a class of characters as a pattern of Vim, and its brackets as those of a name.
---@param class string such as `[a-z]`, which is both; `[z-a]` is only a name
local function class_pattern(class)
  local letters = class:gsub("^%[%^?", ""):gsub("[\\^[]", "\\%0")
  local pattern = (class:sub(2, 2) == "^" and "\\[^" or "\\[") .. letters
  local name = class:gsub("\\", "\\\\")
  local is_class = class ~= "[^]" and pcall(vim.regex, "\\V" .. pattern)
  return is_class and ("\\%%(%s\\|%s\\)"):format(pattern, name) or name
end

--- Return a glob as a pattern of Vim after `\V`; the same as `translate` in globs.py.
---@param has_braces boolean whether they are no characters of a name
local function translate(glob, has_braces)
  local parts, depth, at = {}, 0, 1
  local function add(pattern, bytes)
    table.insert(parts, pattern)
    at = at + (bytes or 1)
  end
  while at <= #glob do
    local letter = glob:sub(at, at)
    local class = glob:match("^%[[^%]]+%]", at)
    if class then
      add(class_pattern(class), #class)
    elseif letter == "\\" and at < #glob then
      add([[\\\?]] .. glob:sub(at + 1, at + 1):gsub("\\", "\\\\"), 2)
    elseif has_braces and letter == "{" then
      depth = depth + 1
      add("\\%(")
    elseif depth > 0 and letter == "}" then
      depth = depth - 1
      add("\\)")
    else
      add(depth > 0 and letter == "," and "\\|" or PATTERNS[letter] or letter:gsub("\\", "\\\\"))
    end
  end
  return depth > 0 and translate(glob, false) or table.concat(parts)
end

---@return vim.regex? matches an absolute path
local function compile(globs)
  if #globs == 0 then
    return nil
  end
  local branches = vim.tbl_map(function(glob)
    return translate(glob, true)
  end, globs)
  -- With the slash before the branches, they are only tried where a name begins.
  return vim.regex(([[\V\c/\%%(%s\)\$]]):format(table.concat(branches, "\\|")))
end

---@type vim.regex?
local secrets
---@type vim.regex?
local harmless
---@type { key: string, regex?: vim.regex } the user's globs that were used last
local own_globs = { key = "" }

---@return vim.regex?
local function compile_own(globs)
  local key = table.concat(globs, "\0")
  if key ~= own_globs.key then
    own_globs = { key = key, regex = compile(globs) }
  end
  return own_globs.regex
end

--- Return whether a path may match: the regular expression takes 0.1 ms.
---@param path string in lower case
local function has_hint(path)
  for _, hint in ipairs(boundary.secret_hints) do
    if path:find(hint, 1, true) then
      return true
    end
  end
  return false
end

---@param path string absolute
---@param more string[] the user's globs
function M.is_secret_path(path, more)
  local own = compile_own(more)
  if own and own:match_str(path) then
    return true
  elseif not has_hint(path:lower()) then
    return false
  end
  secrets = secrets or compile(boundary.secrets)
  harmless = harmless or compile(boundary.harmless)
  if harmless and harmless:match_str(path) then
    return false
  end
  return secrets ~= nil and secrets:match_str(path) ~= nil
end

---@return boolean whether it contains a private key
function M.has_private_key(text)
  for _, key in ipairs(boundary.keys) do
    -- The plain search comes first: a pattern takes a quarter of a millisecond.
    if text:find(key[1], 1, true) and text:find(key[2]) then
      return true
    end
  end
  return false
end

---@return string at most HEAD_LINES lines and about HEAD_BYTES bytes of its beginning
local function head_of(buf)
  local last = math.min(api.nvim_buf_line_count(buf), HEAD_LINES) - 1
  while last > 0 and api.nvim_buf_get_offset(buf, last) > HEAD_BYTES do
    last = last - 1
  end
  local bytes = api.nvim_buf_get_offset(buf, last + 1) - api.nvim_buf_get_offset(buf, last)
  local end_col = bytes > HEAD_BYTES and HEAD_BYTES or -1
  return table.concat(api.nvim_buf_get_text(buf, 0, 0, last, end_col, {}), "\n")
end

---@class (exact) lcursor.GitQuestion
---@field top string folder of the repository
---@field name string path of the file below it
---@field entry lcursor.Checked

---@type lcursor.GitQuestion[]
local questions = {}
local is_asking, is_started = false, false
local ask_next ---@type fun()

---@return table<string, string> environment for a git in a folder
local function git_environment(top)
  local env = vim.fn.environ()
  for name in pairs(env) do
    if vim.startswith(name, "GIT_") and not vim.list_contains(boundary.git_inherited, name) then
      env[name] = nil
    end
  end
  -- A relative folder may be one of the project.
  local folders = vim.tbl_filter(function(folder)
    return vim.startswith(folder, "/")
  end, vim.split(env.PATH or "", ":", { plain = true }))
  env.PATH = #folders > 0 and table.concat(folders, ":") or nil
  local where = { GIT_CEILING_DIRECTORIES = vim.fs.dirname(top), GIT_WORK_TREE = top }
  return vim.tbl_extend("force", env, boundary.git_environment, where)
end

---@param result vim.SystemCompleted
---@return string? message of git if it failed; others than some known ones may quote a file
local function failure_of(result)
  if result.code <= 1 then
    return nil
  elseif result.code == TIMED_OUT then
    return ("git took longer than %d s"):format(GIT_MS / 1000)
  end
  for line in vim.gsplit(result.stderr or "", "\n", { plain = true }) do
    for _, known in ipairs(boundary.git_messages) do
      if vim.startswith(line, known) then
        return line:match("^[^:]*:?[^:]*")
      end
    end
  end
  return ("git failed with status %d"):format(result.code)
end

---@param entry lcursor.Checked
---@param answer "ignored"|"fine"|"failed"
---@param failure? string message of git
local function finish(entry, answer, failure)
  entry.git, entry.failure = answer, failure
  local listeners = entry.listeners
  entry.listeners = {}
  vim.iter(listeners):map(notify.guarded):each(vim.schedule)
end

--- Ask git about some files of one repository.
---@param asked lcursor.GitQuestion[]
---@param done fun()
local function ask(asked, done)
  local top = asked[1].top
  local command = vim.list_extend({}, boundary.git)
  vim.list_extend(command, { "-C", top, "check-ignore", "-z", "--stdin" })
  local names = vim.tbl_map(function(question)
    return question.name .. "\0"
  end, asked)
  local options = {
    clear_env = true,
    env = git_environment(top),
    stdin = table.concat(names),
    timeout = GIT_MS,
  }
  local ok = pcall(vim.system, command, options, function(result)
    local failure = failure_of(result)
    -- One of them may be the reason. After a timeout, each would have to be waited for.
    if failure and #asked > 1 and result.code ~= TIMED_OUT then
      local function ask_each(number)
        if asked[number] then
          return vim.schedule(function()
            ask({ asked[number] }, function()
              ask_each(number + 1)
            end)
          end)
        end
        done()
      end
      return ask_each(1)
    end
    local ignored = {} ---@type table<string, true>
    for name in (result.stdout or ""):gmatch("%Z+") do
      ignored[name] = true
    end
    for _, question in ipairs(asked) do
      local answer = ignored[question.name] and "ignored" or "fine"
      finish(question.entry, failure and "failed" or answer, failure)
    end
    done()
  end)
  if not ok then
    for _, question in ipairs(asked) do
      finish(question.entry, "failed", "it cannot be run")
    end
    done()
  end
end

--- Ask about all files of the first waiting repository, one process at a time.
function ask_next()
  local first = questions[1]
  is_asking = first ~= nil
  if not first then
    return
  end
  local asked, rest = {}, {}
  for _, question in ipairs(questions) do
    table.insert(question.top == first.top and asked or rest, question)
  end
  questions = rest
  ask(asked, function()
    vim.schedule(ask_next)
  end)
end

--- Return the path without links: what a link leads to is read, and git knows no files below links.
local function real_path(path)
  local folder, name = vim.fs.dirname(path), vim.fs.basename(path)
  return vim.uv.fs_realpath(path) or vim.fs.joinpath(vim.uv.fs_realpath(folder) or folder, name)
end

---@param path string without links
---@return string? folder of the nearest repository above
local function top_of(path)
  for folder in vim.fs.parents(path) do
    local mark = folder .. "/.git"
    local found = vim.uv.fs_stat(mark) or vim.uv.fs_lstat(mark)
    if found and (found.type ~= "directory" or vim.uv.fs_lstat(mark .. "/HEAD")) then
      return folder
    end
  end
end

---@param entry lcursor.Checked
local function ask_git(entry, path)
  local real = real_path(path)
  local top = top_of(real)
  if not top then
    entry.git = "fine"
    return
  end
  entry.git = "asked"
  table.insert(questions, { top = top, name = vim.fs.relpath(top, real) or real, entry = entry })
  if not is_asking then
    is_asking = true
    vim.schedule(ask_next)
  end
end

--- Return the folders that may have another name of a file: its own, those above it in the same
--- repository, those of the user's home, and others of the repository, the upper ones first.
---@param path string without links
---@return fun(): string?
---@return fun(folder: string) to be called with each folder in one that was returned
local function folders_with_names(path)
  local top = top_of(path) or vim.fs.dirname(path)
  local waiting, known = {}, {} ---@type string[], table<string, true>
  local function add(folder)
    if not known[folder] then
      known[folder] = true
      table.insert(waiting, folder)
    end
  end
  for folder in vim.fs.parents(path) do
    add(folder)
    if folder == top then
      break
    end
  end
  local home = vim.uv.os_homedir()
  for _, name in ipairs(home and HOME or {}) do
    add(vim.fs.normalize(vim.fs.joinpath(home, name)))
  end
  local number = 0
  return function()
    number = number + 1
    return waiting[number]
  end, function(folder)
    if vim.startswith(folder, top .. "/") and not OF_TOOLS[vim.fs.basename(folder)] then
      add(folder)
    end
  end
end

--- Return whether one of the other names of a file is one of secrets.
---@param path string without links
---@param more string[] the user's globs
local function has_secret_name(path, more)
  local file = vim.uv.fs_stat(path)
  if not file or file.nlink < 2 then
    return false
  end
  local left = MAX_ENTRIES
  local next_folder, add = folders_with_names(path)
  for folder in next_folder do
    for name, kind in vim.fs.dir(folder) do
      left = left - 1
      if left < 0 then
        return false
      end
      local other = vim.fs.joinpath(folder, name)
      if kind == "directory" then
        add(other)
      elseif kind == "file" and (#more > 0 or has_hint(other:lower())) then
        -- The names are compared last: that takes 50 times as long.
        local found = vim.uv.fs_stat(other)
        local is_same = found and found.ino == file.ino and found.dev == file.dev
        if is_same and M.is_secret_path(other, more) then
          return true
        end
      end
    end
  end
  return false
end

---@param more string[] the user's globs
---@return "secret"|"secret_link"|nil whether one of its names is one of secrets
local function secret_of(path, more)
  local real = path ~= "" and real_path(path) or path
  if M.is_secret_path(path, more) or (real ~= path and M.is_secret_path(real, more)) then
    return "secret"
  end
  return path ~= "" and has_secret_name(real, more) and "secret_link" or nil
end

--- Forget all answers: the rules of git may have changed.
local function forget_git()
  checked = {}
end

--- Notice changes of git's rules; those by another program when Neovim gets the focus.
local function start()
  if not is_started then
    is_started = true
    local on = notify.autocmds("privacy")
    on("BufWritePost", forget_git, { pattern = { ".gitignore", "*/.git/info/exclude" } })
    on("FocusGained", forget_git)
  end
end

---@param more string[] the user's globs
---@return lcursor.Checked
local function check(path, more)
  local key = path .. "\0" .. table.concat(more, "\0")
  if not checked[key] then
    start()
    local git = path == "" and "fine" or "unknown"
    checked[key] = { secret = secret_of(path, more), git = git, listeners = {} }
  end
  return checked[key]
end

--- Return why a buffer must not be read.
---@param more string[] the user's globs
---@param answered? fun() called, later, when git has answered; nil: git is not asked
---@return string? code of complete/why.lua
function M.block_reason(buf, more, answered)
  local path = api.nvim_buf_get_name(buf)
  local entry = check(path, more)
  if entry.secret then
    return entry.secret
  elseif M.has_private_key(head_of(buf)) then
    return "secret_text"
  elseif not attach.is_wanted(buf) then
    return "not_attached"
  end
  if entry.git == "unknown" and answered then
    ask_git(entry, path)
  end
  if entry.git == "asked" and answered then
    table.insert(entry.listeners, answered)
  end
  if entry.git == "fine" then
    attach.report(buf)
    return nil
  end
  return GIT_CODES[entry.git] or "checking"
end

--- Return why a buffer that the user named must not be sent. Files that git ignores may be.
---@return string? message
function M.private_reason(buf)
  local more = config.for_buffer(buf).privacy.exclude
  return M.REASONS[M.block_reason(buf, more)]
end

--- Return why a file that is not in a buffer must not be sent, by its name.
---@param path string absolute
---@return string? message
function M.name_reason(path)
  return M.REASONS[check(path, config.get().privacy.exclude).secret]
end

--- Check whether a file that is not in a buffer may be read, by its name and git.
---@param path string absolute
---@param more string[] the user's globs
---@param answer fun(is_fine: boolean) called once, now or later
function M.ask_file(path, more, answer)
  local entry = check(path, more)
  if entry.secret then
    return answer(false)
  end
  local function report()
    answer(entry.git == "fine")
  end
  if entry.git == "unknown" then
    ask_git(entry, path)
  end
  if entry.git == "asked" then
    table.insert(entry.listeners, report)
  else
    report()
  end
end

--- Return git's message if it could not say whether it ignores a buffer's file.
---@return string? message
function M.git_failure(buf)
  return check(api.nvim_buf_get_name(buf), config.for_buffer(buf).privacy.exclude).failure
end

return M
