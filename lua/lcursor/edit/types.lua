---@meta
-- Types of edits. Loaded by nobody: for the language server and the reader.
-- Rows are 0-based; a last row is the one behind.

---@class (exact) lcursor.EditChange the fields of `EditChange`
---@field first_row integer
---@field last_row integer
---@field old string[]
---@field new string[]

---@class (exact) lcursor.EditCheck the fields of `EditCheck`
---@field name string
---@field is_ok boolean
---@field text string

---@alias lcursor.EditKind "edit"|"create"|"delete"|"rename"

---@class (exact) lcursor.EditFile the fields of `EditFile`
---@field path string
---@field name string
---@field kind lcursor.EditKind
---@field to string
---@field base string digest of the text that the rows are of; "" for a file that is created
---@field tick integer of the buffer that it was read from; -1 for the disk
---@field changes lcursor.EditChange[]
---@field checks lcursor.EditCheck[]
---@field is_outside boolean

---@class (exact) lcursor.EditProposed the fields of `edit.proposed`
---@field id integer
---@field turn string
---@field title string
---@field alternative integer
---@field files lcursor.EditFile[]
---@field note string
---@field attempts integer
---@field chat string

---@class (exact) lcursor.EditHunk the fields of `EditHunk`: a change as it was made
---@field row integer
---@field old string[]
---@field new string[]
---@field above string[]
---@field below string[]

---@class (exact) lcursor.EditDecided the fields of `edit.decided`
---@field turn string
---@field path string
---@field accepted lcursor.EditHunk[]
---@field rejected lcursor.EditChange[] rows of the base
---@field open integer
---@field is_undone boolean

---@class (exact) lcursor.EditBlock rows of a hunk's old lines, and of its new ones, that are a pair
---@field first integer
---@field last integer
---@field new_first integer
---@field new_last integer

---@class (exact) lcursor.EditSpan where something stands in a buffer, while that is typed in
---@field first integer
---@field last integer
---@field is_exact boolean false where its lines were touched: then it is an area that had them
---@field head integer rows of the area above what it had
---@field tail integer rows of the area below it
---@field is_dirty boolean to be looked at again

---@alias lcursor.HunkState
---| "waiting" its file is in no buffer
---| "open"
---| "conflict" the lines that it is about are others now
---| "accepted"
---| "rejected"

---@class (exact) lcursor.Hunk : lcursor.EditSpan a change that the user decides about
---@field part lcursor.EditPart
---@field base_row integer of the base
---@field old string[]
---@field new string[]
---@field state lcursor.HunkState
---@field above table<string, true> lines that may stand above; for one without old lines
---@field below table<string, true>
---@field seq integer change number of the buffer that accepted it
---@field blocks? lcursor.EditBlock[]
---@field colours? table<integer, lcursor.EditColour[]>|false by the row of `new`; false for none
---@field marks integer[] extmarks that draw it

---@class (exact) lcursor.EditPart what a turn does to one file
---@field turn lcursor.EditTurn
---@field file lcursor.EditFile
---@field buf? integer where it is loaded
---@field base? string[] lines that the rows are of, once they are known
---@field hunks lcursor.Hunk[] in the order of their rows
---@field state "waiting"|"placed"|"done" `done`: written to the disk, or refused as a whole

---@class (exact) lcursor.EditTurn a proposal
---@field key string
---@field id integer
---@field title string
---@field note string
---@field chat string
---@field alternative integer
---@field group string key of the first of those for the same edit
---@field is_hidden boolean another one for the same edit is shown
---@field parts lcursor.EditPart[]

---@class (exact) lcursor.EditColour
---@field first integer byte
---@field last integer
---@field group string

---@class (exact) lcursor.EditText the fields of `EditBuffer`
---@field path string
---@field tick integer
---@field text string

---@alias lcursor.EditWhat "region"|"project"|"many"|"apply"|"commit"

---@class (exact) lcursor.EditRun an edit that runs, or ran
---@field id integer
---@field what lcursor.EditWhat
---@field buf? integer
---@field view lcursor.EditView
---@field instruction string
---@field model string
---@field instead? string key of the turn that the next proposal is an alternative to
---@field answered? fun(params: table) hears `edit.message`
---@field is_stopping boolean
---@field traces { buf: integer, tick: integer }[] texts that were sent besides
---@field mark? integer what was selected, or the cursor's row; moves with what is typed
---@field window? { close: fun() } plan or question that waits

---@class (exact) lcursor.EditView
---@field buf? integer nil: it is about no buffer, and is told in the message line
---@field number integer of those that ran, in the order in which they began
---@field title string what was asked for; "" where nothing was said
---@field tick integer of the base
---@field mark? integer its region
---@field head? integer extmark of the line above
---@field tail? integer extmark of the new lines
---@field first integer row, as long as there is no mark
---@field last integer behind it
---@field what string
---@field phase string
---@field detail string
---@field done integer
---@field total integer
---@field seconds_left number
---@field attempt integer
---@field lines string[] written at this attempt
---@field is_stopping boolean
---@field drawn string what the line above says
---@field titled string what is said above the new lines; "" where no other edit is there

---@class (exact) lcursor.EditStep the fields of `EditStep`
---@field key string
---@field kind lcursor.EditKind
---@field path string
---@field name string
---@field to string
---@field first_row integer
---@field last_row integer
---@field what string
---@field do string

---@class (exact) lcursor.EditChoice the fields of `EditChoice`
---@field path string
---@field name string
---@field first_row integer
---@field last_row integer
---@field lines string[]
---@field why string

---@class (exact) lcursor.EditLookAsked the fields of `EditLook`
---@field id integer
---@field look integer
---@field path string
---@field before string
---@field after string

---@class (exact) lcursor.EditProblem the fields of `EditProblem`
---@field row integer
---@field text string
---@field code string

---@class (exact) lcursor.EditServer the fields of `EditServer`
---@field name string
---@field before lcursor.EditProblem[]
---@field after lcursor.EditProblem[]

---@class (exact) lcursor.EditTurnRow the fields of `EditTurnRow`
---@field turn string
---@field title string
---@field state "open"|"done"|"undone"
---@field at_s number
---@field paths string[]
---@field open integer

---@class (exact) lcursor.EditPlace the fields of `EditPlace`
---@field path string
---@field row integer
---@field text string
