---@meta
-- Types of edits, for the language server and the reader; never loaded.
-- Rows are 0-based; a last row is the one after.

---@class (exact) lcursor.EditBlock rows of a hunk's old lines and of its new ones that correspond
---@field first integer
---@field last integer
---@field new_first integer
---@field new_last integer

---@class (exact) lcursor.EditSpan a row range that follows a buffer, see track.lua
---@field first integer
---@field last integer
---@field is_exact boolean false where its lines were touched: it is an area that held them
---@field head integer rows of the area above what it held
---@field tail integer rows of the area below it
---@field is_dirty boolean to be looked at again

---@alias lcursor.HunkState
---| "waiting" its file is not loaded
---| "open"
---| "conflict" the original lines were modified
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
---@field is_lost? boolean its place is not known

---@class (exact) lcursor.EditPart what a proposal does to one file
---@field proposal lcursor.EditProposal
---@field file lcursor.EditFile
---@field buf? integer where it is loaded
---@field base? string[] lines that the rows are of, once they are known
---@field hunks lcursor.Hunk[] in the order of their rows
---@field state "waiting"|"placed"|"done" `done`: written to the disk, or rejected as a whole
---@field seq integer change number of the buffer when it was looked at last
---@field top integer the highest one seen
---@field written? table<lcursor.Hunk, integer> while hunks are accepted: those that need not move

---@class (exact) lcursor.EditProposal
---@field key string
---@field id integer of the edit
---@field title string
---@field group string key of the first proposal for the same edit
---@field is_hidden boolean another one for the same edit is shown
---@field parts lcursor.EditPart[]

---@class (exact) lcursor.EditColor
---@field first integer byte
---@field last integer
---@field group string

---@class (exact) lcursor.EditRun an edit that runs, or ran
---@field id integer
---@field buf? integer
---@field view lcursor.EditView
---@field instruction string
---@field model string
---@field instead? string key of the proposal that the next one is an alternative to
---@field answered? fun(params: table) receives `edit.message`
---@field is_stopping boolean
---@field sent { buf: integer, tick: integer }[] other texts that were sent
---@field mark? integer what was selected, or the cursor's row; moves with what is typed
---@field window? { close: fun() } plan or question that is open

-- Structures of the protocol; lcursor/protocol_edit.py describes their fields.
---@alias lcursor.EditChange table<string, any> `EditChange`
---@alias lcursor.EditFile table<string, any> `EditFile`
---@alias lcursor.EditProposed table<string, any> `edit.proposed`
---@alias lcursor.EditHunk table<string, any> `EditHunk`
---@alias lcursor.EditDecided table<string, any> `edit.decided`
---@alias lcursor.EditText table<string, any> `EditBuffer`
---@alias lcursor.EditStep table<string, any> `EditStep`
---@alias lcursor.EditChoice table<string, any> `EditChoice`
---@alias lcursor.EditTurnRow table<string, any> `EditTurnRow`
