-- The health check's section about the index: what the workers of this session's projects say of
-- themselves. Reads; starts nothing.

local M = {}

local health = vim.health

---@param state lcursor.IndexState
local function check_state(state)
  local states = require("lcursor.index.states")
  local name = vim.fn.fnamemodify(state.root, ":~")
  local text = ("%s: %s"):format(name, states.sentence(state))
  if state.phase == "failed" then
    local advice = "Fix this, then run `:LCursor index rebuild` in a file of it"
    health.error(text, { advice, "See `:LCursor log`" })
  elseif state.phase == "absent" then
    health.warn(text, "Enter a file of it, or run `:LCursor index`")
  else
    health.ok(text)
  end
  if not states.is_alive(state) then
    return
  end
  if state.embedder ~= "" then
    local format = "It is found by meaning with %s: %d of %d pieces"
    health.info(format:format(state.embedder, state.embedded, state.chunks))
  elseif state.embedder_note ~= "" then
    health.warn("It is found by words alone: " .. state.embedder_note)
  else
    health.info("It is found by words alone (setting index.embedder)")
  end
  if state.watching == "" and state.phase == "ready" then
    health.warn("Changes of its files are not seen", "Run `:LCursor restart`")
  elseif state.watching == "polling" then
    health.warn(
      "Changes of its files are seen by looking at all of them now and then",
      "Raise the limit: `sudo sysctl fs.inotify.max_user_watches=1048576`, then `:LCursor restart`"
    )
  elseif state.watching ~= "" then
    health.info("Changes of its files are seen at once")
  end
  local format = "Its worker is process %d and has %.0f MB of memory"
  health.info(format:format(state.pid, state.memory_bytes / 1e6))
  for _, remark in ipairs(state.remarks) do
    health.warn(remark)
  end
end

---@param found lcursor.Findings
function M.check(found)
  if not found.settings.index.enabled then
    return health.info("Switched off by the setting index.enabled")
  end
  local grammars = found.probe and found.probe.facts.grammars
  if grammars and grammars.problem then
    health.warn(grammars.problem.message, grammars.problem.hint)
  elseif grammars then
    health.ok("Grammars: " .. grammars.text)
  end
  local stored = found.probe and found.probe.facts.index
  if stored and stored.problem then
    health.warn(stored.problem.message, stored.problem.hint)
  elseif stored then
    health.info("Kept: " .. stored.text)
  end
  local known = package.loaded["lcursor.index"] and require("lcursor.index").states() or {}
  if #known == 0 then
    health.info("No project is indexed in this session; `:LCursor index` says what one would read")
  end
  for _, state in ipairs(known) do
    check_state(state)
  end
end

return M
