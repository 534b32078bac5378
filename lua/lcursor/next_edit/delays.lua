-- How long next edits wait, in ms. Tests set other values, and wait for less or for more.

return {
  rest = 300, -- without a key in Insert mode, before an edit is over
  pause = 400, -- without a key in Insert mode, before a hint
  move = 300, -- in Normal mode, after the cursor moved, before anything is drawn
  edit = 50, -- after an edit or another mode: until then that moves the cursor
  glance = 250, -- visible for less, it was not seen
  again = 300, -- between two changes in Normal mode; the second is asked about later
  wide = 300, -- after an answer, before the other open files are sent
  stand = 250, -- without a change of the diagnostics; some come and go
}
