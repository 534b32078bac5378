-- Every class of the editor half, for the language server and for readers. No code.

---@meta

---@class (exact) lcursor.Error what the user is told
---@field code string one of protocol.levels
---@field message string what failed
---@field hint string what to do about it, or ""
---@field level "silent"|"info"|"warn"|"error"

---@class (exact) lcursor.Problem
---@field key string setting that is wrong
---@field message string

---@class (exact) lcursor.CompletionConfig
---@field enabled boolean
---@field auto_trigger boolean
---@field debounce_ms integer
---@field model string
---@field gpu_layers integer
---@field threads integer
---@field context_tokens integer
---@field prefix_tokens integer
---@field suffix_tokens integer
---@field max_tokens integer
---@field max_lines integer
---@field budget_ms integer
---@field in_comments boolean
---@field filetypes table<string, boolean>
---@field max_file_bytes integer
---@field max_line_bytes integer
---@field secrets string[]

---@class (exact) lcursor.KeymapConfig
---@field enabled boolean
---@field accept string
---@field accept_line string
---@field accept_word string
---@field dismiss string

---@class (exact) lcursor.Config all settings, complete
---@field enabled boolean
---@field python string
---@field log_level "debug"|"info"|"warn"|"error"
---@field completion lcursor.CompletionConfig
---@field keymaps lcursor.KeymapConfig

---@class lcursor.Opts what a user may give: any part of lcursor.Config

---@alias lcursor.HostState
---| "stopped"       not started yet
---| "absent"        there is no Python environment
---| "installing"
---| "starting"      the process runs, hello is not answered
---| "loading_model"
---| "ready"
---| "failed"        gave up, or the model cannot be used; see :LCursor log

---@class (exact) lcursor.Request the fields of `fim.request`
---@field id integer
---@field buf integer
---@field tick integer
---@field path string
---@field name string
---@field repo string
---@field filetype string
---@field first_row integer
---@field row integer
---@field col integer
---@field prefix string
---@field suffix string
---@field single_line boolean
---@field trigger "auto"|"manual"

---@class (exact) lcursor.Stats the cost of one completion, as `fim.done` tells it
---@field prompt_tokens integer
---@field reused_tokens integer
---@field decoded_tokens integer
---@field generated_tokens integer
---@field queue_ms number
---@field prompt_ms number
---@field first_ms number
---@field total_ms number
---@field confidence number

---@class (exact) lcursor.Answer how a request ended
---@field text string all of it; empty where there is nothing to show
---@field reason string why it ended there
---@field stats? lcursor.Stats nil when the host did not answer

---@class (exact) lcursor.Waiter who asked for a completion
---@field partial fun(id: integer, text: string) all text so far
---@field done fun(id: integer, answer: lcursor.Answer)

---@class (exact) lcursor.Spot where a front end wants a suggestion
---@field buf integer
---@field row integer
---@field col integer
---@field is_manual boolean the user asked for it

---@class (exact) lcursor.Why the last decision about showing something here
---@field code string for example "secret", "filetype", "waiting"
---@field text string one sentence
---@field at_ms integer vim.uv.now() of the decision

---@class (exact) lcursor.Suggestion
---@field id integer of its request
---@field buf integer
---@field row integer anchor: where the cursor was when it was asked for
---@field col integer
---@field head string text left of the anchor, in its line
---@field tail string text right of the anchor, in its line
---@field line_count integer of the buffer then
---@field single_line boolean only its first line is wanted
---@field text string all that the model has said, from the anchor on
---@field is_done boolean the model will say no more
---@field is_told boolean the User event was fired
