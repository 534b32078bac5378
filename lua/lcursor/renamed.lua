-- Options of earlier versions: their present names, or why they were removed. Kept for one release.

local M = {}

---@class (exact) lcursor.OldOption
---@field [1] string its dotted name
---@field to? string the option that gets its value
---@field with? fun(value: any): any makes the new value from the old one
---@field now? string its new name for the message
---@field see? string tag of the help; by default that of the new option
---@field gone? string why it is no longer an option

local ENDPOINT = "lcursor-endpoint"
local GPU = "it depends on the machine"

-- Parents come before their fields, because these are searched at the new place.
-- stylua: ignore
---@type lcursor.OldOption[]
M.options = {
  { "chat.models", to = "models" },
  { "completion.backend", to = "completion.model", now = "implied by completion.model",
    see = ENDPOINT, with = function(backend) return backend == "endpoint" and "server" or nil end },
  { "completion.endpoint_api", to = "models.server.api" },
  { "completion.endpoint_family", to = "models.server.family" },
  { "completion.endpoint_key_command", to = "models.server.key_command" },
  { "completion.endpoint_key_env", to = "models.server.key_env" },
  { "completion.endpoint_model", to = "models.server.model" },
  { "completion.endpoint_url", to = "models.server.url" },

  { "keymaps.enabled", to = "completion.keymap", with = function(is_on)
    if is_on == false then
      return false
    end
  end },
  { "keymaps", to = "completion.keymap" },
  { "chat.mappings", to = "chat.keymap" },
  { "chat.keymap.previous", to = "chat.keymap.prev" },
  { "chat.keymap.previous_branch", to = "chat.keymap.prev_branch" },
  { "edit.mappings", to = "edit.keymap" },
  { "edit.keymap.previous", to = "edit.keymap.prev" },
  { "edit.keymap.previous_alternative", to = "edit.keymap.prev_alternative" },
  { "edit.keymap.accept_turn", to = "edit.keymap.accept_all" },
  { "edit.keymap.reject_turn", to = "edit.keymap.reject_all" },

  { "chat.float", to = "chat.window.position", with = function(is_on)
    return is_on and "float" or nil
  end },
  { "chat.side", to = "chat.window.position" },
  { "chat.size", to = "chat.window.size" },
  { "chat.screen", to = "chat.auto_context" },
  { "chat.rules", to = "chat.rule_files" },
  { "edit.planner", to = "edit.plan_model" },
  { "completion.secrets", to = "privacy.exclude" },

  { "chat.enabled", gone = "nothing runs before you ask" },
  { "chat.route", gone = "choose a model with :LCursor chat model" },
  { "chat.route_small", gone = "choose a model with :LCursor chat model" },
  { "chat.speculate", gone = "it is always on" },
  { "chat.summarize_at", gone = "chats are summarized at 85 % of the context" },
  { "chat.temperature", gone = "it is 0.2" },
  { "completion.budget_ms", gone = "the limit is 4 seconds" },
  { "completion.idle_minutes", gone = GPU .. ": 30 on a GPU, else never" },
  { "completion.kv_type", gone = "the cache adapts to the memory of the GPU" },
  { "completion.max_file_bytes", gone = "the limit is 2 MiB" },
  { "completion.max_line_bytes", gone = "the limit is 4096 bytes" },
  { "completion.prefix_tokens", gone = GPU },
  { "completion.suffix_tokens", gone = GPU },
  { "completion.with_changes", gone = "it misled small models" },
  { "completion.with_diagnostics", gone = "it misled small models" },
  { "edit.enabled", gone = "nothing runs before you ask" },
  { "edit.format", gone = "the best one for the model is used" },
  { "edit.max_tokens", gone = "the limit is 4096 tokens" },
  { "edit.region_tokens", gone = "the limit is 1500 tokens" },
  { "edit.retries", gone = "a failed check is tried again once" },
  { "edit.temperature", gone = "it is 0 for the first attempt" },
  { "index.auto", gone = "it is always on; see index.enabled" },
  { "index.limit", gone = "the limit is 30 results" },
  { "index.picker", gone = "use :LCursor search {words} for a list" },
  { "index.unsaved", gone = "it is always on" },
}

--- Remove an option from a table, and return its value.
---@param tree table
---@param path string[]
---@return any value
local function remove(tree, path)
  for index = 1, #path - 1 do
    tree = tree[path[index]]
  end
  local name = path[#path]
  local value = tree[name]
  tree[name] = nil
  return value
end

--- Set an option, unless it is set; tables are merged.
---@param tree table
---@param path string[]
---@param value any
local function put(tree, path, value)
  for index = 1, #path - 1 do
    local name = path[index]
    tree[name] = tree[name] == nil and {} or tree[name]
    tree = tree[name]
    if type(tree) ~= "table" then
      return
    end
  end
  local name = path[#path]
  if type(tree[name]) == "table" and type(value) == "table" then
    tree[name] = vim.tbl_extend("keep", tree[name], value)
  elseif tree[name] == nil then
    tree[name] = value
  end
end

---@param old lcursor.OldOption
---@return string
local function describe(old)
  if old.gone then
    return ("%s is no longer an option: %s"):format(old[1], old.gone)
  end
  local name = (old.now or old.to):gsub("^models%.server%.", "models.NAME.")
  local tag = name:find("^models") and ENDPOINT or "lcursor-" .. name
  tag = tag:gsub("(%.keymap)%..*", "%1"):gsub("(%.window)%..*", "%1")
  return ("%s is now %s: see |%s|"):format(old[1], name, old.see or tag)
end

--- Replace the old options in a user's table by the present ones.
---@param user table
---@return table user a copy, if there are any
---@return lcursor.Problem[]
function M.update(user)
  local found, is_copy = {}, false
  for _, old in ipairs(M.options) do
    local path = vim.split(old[1], ".", { plain = true })
    if vim.tbl_get(user, unpack(path)) ~= nil then
      user, is_copy = is_copy and user or vim.deepcopy(user), true
      local value = remove(user, path)
      if old.with then
        value = old.with(value)
      end
      if old.to and value ~= nil then
        put(user, vim.split(old.to, ".", { plain = true }), value)
      end
      table.insert(found, { key = old[1], message = describe(old) })
    end
  end
  return user, found
end

return M
