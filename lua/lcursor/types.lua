-- Classes that several files use, for the language server and for readers. No code.

---@meta

---@class (exact) lcursor.Error an error for the user
---@field code string one of protocol.levels
---@field message string
---@field hint string how to fix it, or ""
---@field level "silent"|"info"|"warn"|"error"

---@class (exact) lcursor.Problem
---@field key string invalid setting
---@field message string

---@class lcursor.Config all settings, complete; described in schema.lua
---@field enabled boolean
---@field python string
---@field log_level "debug"|"info"|"warn"|"error"
---@field should_attach false|fun(buf: integer): boolean
---@field on_attach false|fun(buf: integer)
---@field models table<string, table<string, any>>
---@field completion table<string, any>
---@field next_edit table<string, any>
---@field privacy table<string, any>
---@field index table<string, any>
---@field chat table<string, any>
---@field edit table<string, any>
---@field agent table<string, any>
---@field mcp table<string, any>

---@class lcursor.Opts the user's settings: any part of lcursor.Config

---@alias lcursor.HostState
---| "stopped"       not started yet
---| "absent"        there is no Python environment
---| "installing"
---| "starting"      the process runs, hello is not answered
---| "loading_model"
---| "ready"
---| "failed"        gave up, or the model cannot be used; see :LCursor log

---@class (exact) lcursor.Stats the cost of one completion, as in `fim.done`
---@field prompt_tokens integer
---@field reused_tokens integer
---@field decoded_tokens integer
---@field passes integer
---@field generated_tokens integer
---@field queue_ms number
---@field prompt_ms number
---@field first_ms number
---@field total_ms number
---@field confidence number
---@field threshold number
---@field source "model"|"cache"|"speculation"
---@field window "short"|"full"

---@class (exact) lcursor.Answer how a request ended
---@field text string the whole text; empty if there is nothing to show
---@field replaces? integer bytes right of the cursor that it replaces: the rest of the line
---@field reason string why it ended there
---@field stats? lcursor.Stats nil when the host did not answer

---@class (exact) lcursor.CompletionListener the callbacks of a request for a completion
---@field partial fun(id: integer, text: string) all text so far
---@field done fun(id: integer, answer: lcursor.Answer)
---@field improved? fun(id: integer, answer: lcursor.Answer) a better answer, some time after `done`

---@class (exact) lcursor.Spot where a front end requests a suggestion
---@field buf integer
---@field row integer
---@field col integer
---@field is_manual boolean the user asked for it

---@class (exact) lcursor.Why the last decision about showing something here
---@field code string for example "secret", "filetype", "waiting"
---@field text string one sentence
---@field numbers string the cost of the answer; "" if unknown
---@field at_ms integer vim.uv.now() of the decision

---@class (exact) lcursor.Suggestion
---@field id integer of its request
---@field buf integer
---@field row integer anchor: the cursor at the request
---@field col integer
---@field head string text left of the anchor, in its line
---@field tail string text right of the anchor, in its line
---@field covering? string a text that contains the tail and continues after it
---@field ahead? integer bytes of `covering` before the tail
---@field line_count integer of the buffer then
---@field single_line boolean only its first line was requested
---@field text string the model's text so far, from the anchor on
---@field is_done boolean the text is complete
---@field is_announced boolean the User event was fired
---@field texts? string[] all alternatives, including `text`; nil until requested
---@field steps? integer how far to go when they arrive; nil if none were requested

---@alias lcursor.End
---| "through"   all of it is in the buffer
---| "typed"     something else was typed
---| "dismissed"
---| "left"      none of these

---@class (exact) lcursor.ShownAt where a suggestion was shown
---@field buf integer
---@field tick integer
---@field row integer
---@field col integer

---@class (exact) lcursor.Life the state of a suggestion, from its request to its end
---@field id integer
---@field key_ms? number when the key was pressed that it answers
---@field filetype string
---@field text string its whole text; "" until it was shown
---@field done integer bytes of it that are in the buffer
---@field accepted integer bytes of these that were accepted
---@field through_keys integer typed keys that agreed with it
---@field seen_ms number time on the screen, up to shown_ms
---@field shown_ms? number when it was shown; nil while it is hidden
---@field latency_ms number from the key to the screen; -1 is unknown
---@field confidence number -1 is unknown
---@field source "model"|"cache"|"speculation"
---@field is_other? boolean an alternative was chosen instead

---@alias lcursor.OpenCommand "edit"|"split"|"vsplit"|"tabedit" how a file is opened

---@class (exact) lcursor.Item something to pick
---@field cells lcursor.Cells its line in a list
---@field file? string absolute
---@field row? integer in the file
---@field end_row? integer
---@field text? string the line without the file and its row
---@field preview? string[] shown instead of the file
---@field filetype? string of the preview
---@field hit? lcursor.IndexHit of a search
---@field confirm fun(command?: lcursor.OpenCommand)

---@class (exact) lcursor.Source what a picker offers
---@field title string
---@field preview? "file"|"text" what `preview` of the items is: nil if they have none
---@field is_live? boolean each query is searched for; otherwise the items are filtered by it
---@field find fun(query: string, done: fun(items: lcursor.Item[])) `done` is called once, later

-- Messages of the protocol; lcursor/protocol/ describes their fields.
---@alias lcursor.Request table<string, any> `fim.request`
---@alias lcursor.StatsMessage table<string, any> `stats`
---@alias lcursor.IndexState table<string, any> `index.state`
---@alias lcursor.IndexReported table<string, any> `index.reported`
---@alias lcursor.IndexHit table<string, any> one result in `index.found`
---@alias lcursor.IndexFound table<string, any> `index.found`
