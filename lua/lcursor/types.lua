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
---@field files_tokens integer
---@field max_tokens integer
---@field max_lines integer
---@field budget_ms integer
---@field min_confidence number
---@field backend "inproc"|"endpoint"
---@field endpoint_url string
---@field endpoint_api "auto"|"llama.cpp"|"ollama"|"openai"
---@field endpoint_model string
---@field endpoint_family string
---@field endpoint_key_env string
---@field endpoint_key_command string
---@field with_diagnostics boolean
---@field with_changes boolean
---@field in_comments boolean
---@field filetypes table<string, boolean>
---@field max_file_bytes integer
---@field max_line_bytes integer
---@field secrets string[]

---@class (exact) lcursor.IndexConfig
---@field enabled boolean
---@field auto boolean
---@field embedder string
---@field unsaved boolean
---@field limit integer
---@field picker "live"|"select"

---@class (exact) lcursor.KeymapConfig
---@field enabled boolean
---@field accept string
---@field accept_line string
---@field accept_word string
---@field dismiss string
---@field next string
---@field prev string

---@class (exact) lcursor.Config all settings, complete
---@field enabled boolean
---@field python string
---@field log_level "debug"|"info"|"warn"|"error"
---@field completion lcursor.CompletionConfig
---@field index lcursor.IndexConfig
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
---@field top string
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
---@field threshold number
---@field source "model"|"cache"|"speculation"

---@class (exact) lcursor.Answer how a request ended
---@field text string all of it; empty where there is nothing to show
---@field replaces? integer bytes right of the cursor that it takes the place of: all of the line
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
---@field numbers string what the answer cost; "" where it says nothing
---@field at_ms integer vim.uv.now() of the decision

---@class (exact) lcursor.Suggestion
---@field id integer of its request
---@field buf integer
---@field row integer anchor: where the cursor was when it was asked for
---@field col integer
---@field head string text left of the anchor, in its line
---@field tail string text right of the anchor, in its line
---@field covering? string a text that says the tail as well and goes on behind it
---@field ahead? integer bytes of `covering` before the tail
---@field line_count integer of the buffer then
---@field single_line boolean only its first line is wanted
---@field text string all that the model has said, from the anchor on
---@field is_done boolean the model will say no more
---@field is_told boolean the User event was fired
---@field texts? string[] all that may be shown here, `text` among them; nil until asked for
---@field steps? integer how far to go among them when they come; nil when nobody waits for them

---@alias lcursor.End
---| "through"   all of it stands in the buffer
---| "typed"     something else was typed
---| "dismissed"
---| "left"      none of these

---@class (exact) lcursor.Stand where a suggestion was looked at
---@field buf integer
---@field tick integer
---@field row integer
---@field col integer

---@class (exact) lcursor.Life what is known of a suggestion, from its request to its end
---@field id integer
---@field key_ms? number when the key came that it answers
---@field filetype string
---@field text string all that it says; "" until it was seen
---@field done integer bytes of it that stand in the buffer
---@field accepted integer bytes of these that were accepted
---@field through_keys integer keys that typed what it says
---@field seen_ms number for how long it was on the screen, up to shown_ms
---@field shown_ms? number since when it is; nil when it is not
---@field latency_ms number from the key to the screen; -1 is unknown
---@field confidence number -1 is unknown
---@field source "model"|"cache"|"speculation"
---@field is_other? boolean an alternative was chosen in its place

---@class (exact) lcursor.Outcome the fields of `fim.outcome`
---@field id integer
---@field filetype string
---@field outcome "accepted"|"partial"|"typed"|"rejected"|"ignored"
---@field source "model"|"cache"|"speculation"
---@field shown_chars integer
---@field kept_chars integer
---@field through_keys integer
---@field shown_ms number
---@field latency_ms number
---@field confidence number

---@class (exact) lcursor.StatsRow one filetype; shares are of 1, below 0 is unknown
---@field filetype string
---@field shown integer
---@field accepted integer
---@field partial integer
---@field typed integer
---@field rejected integer
---@field ignored integer
---@field accept_share number
---@field p50_ms number
---@field p95_ms number
---@field cache_share number
---@field speculation_share number
---@field through_share number
---@field threshold number

---@class (exact) lcursor.StatsMessage the fields of `stats`
---@field rows lcursor.StatsRow[]
---@field total lcursor.StatsRow
---@field since_s number
---@field path string
---@field problem string

---@class (exact) lcursor.PromptPiece one token of `prompt`
---@field id integer
---@field text string
---@field kind "text"|"marker"
---@field is_kept boolean found in the cache, not read anew

---@class (exact) lcursor.IndexState the fields of `index.state`
---@field root string
---@field phase string one of IndexPhase in lcursor/protocol.py
---@field detail string
---@field done integer files while reading, pieces while embedding
---@field total integer 0 where it is not known
---@field seconds_left number below 0 is unknown
---@field files integer
---@field chunks integer
---@field symbols integer
---@field embedded integer
---@field embedder string "" where there is none
---@field embedder_note string why there is none
---@field watching string how changes are seen; "" where they are not
---@field remarks string[] what went wrong and was mended, newest last
---@field memory_bytes integer
---@field pid integer

---@class (exact) lcursor.IndexRow one line of a report
---@field name string a language, or a reason
---@field files integer
---@field bytes integer
---@field examples string[]

---@class (exact) lcursor.IndexReported the fields of `index.reported`
---@field id integer
---@field root string
---@field files integer
---@field bytes integer
---@field seconds number until all is found by words; below 0 is unknown
---@field embed_seconds number and by meaning
---@field languages lcursor.IndexRow[]
---@field ignored lcursor.IndexRow[]
---@field is_home boolean
---@field is_begun boolean

---@class (exact) lcursor.IndexHit a place that was found
---@field path string
---@field name string relative to the root
---@field first_row integer
---@field end_row integer
---@field scope string
---@field kind string of a definition; else ""
---@field language string
---@field text string
---@field score number
---@field parts table<string, number>
---@field is_stale boolean

---@class (exact) lcursor.IndexFound the fields of `index.found`
---@field id integer
---@field root string
---@field query string
---@field hits lcursor.IndexHit[]
---@field ms number
---@field note string
