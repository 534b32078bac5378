"""Hunks of two attempts are combined while the user types: no line is lost, none is doubled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.edits import Room

COUNT = int(os.environ.get("LCURSOR_COMBINATIONS", "500"))
COMBINE = r"""
local seed, count = ...
local apply = require("lcursor.edit.apply")
local diff = require("lcursor.text.diff")
local proposals = require("lcursor.edit.proposals")
local api, buf = vim.api, vim.api.nvim_get_current_buf()
local path = api.nvim_buf_get_name(buf)
math.randomseed(seed)
local accepted, number = 0, 0

-- Every line occurs once, so that each can be followed.
local function lines(prefix, some)
  local made = {}
  for _ = 1, some do
    number = number + 1
    table.insert(made, ("%s%d"):format(prefix, number))
  end
  return made
end

local function changes(base, prefix)
  local made, row = {}, math.random(0, 2)
  while row < #base do
    local last = math.min(row + math.random(0, 2), #base)
    local new = lines(prefix, math.random(last > row and 0 or 1, 2))
    local old = vim.list_slice(base, row + 1, last)
    table.insert(made, { first_row = row, last_row = last, old = old, new = new })
    row = last + math.random(1, 4)
  end
  return made
end

local function propose(base, turn, instead)
  local file = { path = path, name = "a", kind = "edit", to = "", base = diff.digest(base) }
  file.tick, file.checks, file.unneeded = -1, {}, {}
  file.is_outside, file.is_guarded = false, false
  file.changes = changes(base, turn)
  local msg = { id = 1, turn = turn, title = "t", files = { file }, checks = {} }
  return proposals.propose(msg, instead)
end

local function accept(proposal, base, gone, wanted)
  proposals.show(proposal)
  local some = vim.tbl_filter(function(hunk)
    return hunk.state == "open" and math.random() < 0.6
  end, proposal.parts[1].hunks)
  apply.accept(buf, some)
  for _, hunk in ipairs(some) do
    if hunk.state == "accepted" then
      accepted = accepted + 1
      for _, line in ipairs(hunk.old) do
        gone[line] = true
      end
      local below = base[hunk.base_row + #hunk.old + 1] or "base1000000000"
      for _, line in ipairs(hunk.new) do
        wanted[line] = { base[hunk.base_row] or "base0", below }
      end
    end
  end
end

local function type_something(gone, wanted)
  local now = api.nvim_buf_get_lines(buf, 0, -1, false)
  local row = math.random(0, #now)
  local last = math.min(row + math.random(0, 1), #now)
  local new = lines("user", math.random(last > row and 0 or 1, 2))
  if last - row == #now and #new == 0 then
    return -- an empty buffer has one empty line
  end
  for at = row + 1, last do
    gone[now[at]] = true
  end
  for _, line in ipairs(new) do
    wanted[line] = {}
  end
  api.nvim_buf_set_lines(buf, row, last, true, new)
end

for case = 1, count do
  for _, turn in ipairs({ "A", "B" }) do
    proposals.drop(turn)
  end
  local base = lines("base", math.random(1, 14))
  api.nvim_buf_set_lines(buf, 0, -1, true, base)
  local gone, wanted = {}, {}
  local one = propose(base, "A")
  local other = propose(base, "B", "A")
  for _ = 1, math.random(2, 5) do
    local chance = math.random()
    if chance < 0.3 then
      type_something(gone, wanted)
    else
      accept(chance < 0.65 and one or other, base, gone, wanted)
    end
    vim.wait(0)
  end
  local now, seen = api.nvim_buf_get_lines(buf, 0, -1, false), {}
  local previous, least = 0, 0 -- rows of the base above a line, and the first one below it
  if #now == 1 and now[1] == "" then
    now = {}
  end
  for _, line in ipairs(now) do
    local of_base = tonumber(line:match("^base(%d+)"))
    local above, below = unpack(vim.tbl_map(function(name)
      return tonumber(name:sub(5))
    end, wanted[line] or {}))
    local is_back = seen[line] or gone[line]
    if is_back or (of_base or least) < least or (above or previous) < previous then
      return { case, "doubled, back or in a wrong place: " .. line, base, now }
    end
    seen[line], previous = true, of_base or previous
    least = math.max(least, below or 0, of_base and of_base + 1 or 0)
  end
  for _, line in ipairs(vim.list_extend(vim.list_slice(base), vim.tbl_keys(wanted))) do
    if not seen[line] and not gone[line] then
      return { case, "lost: " .. line, base, now }
    end
  end
end
return { accepted }
"""


@pytest.fixture
def room(neovim: Path, tmp_path: Path) -> Iterator[Room]:
    with Room(neovim, tmp_path) as made:
        made.open("a", ["x"])
        yield made


def test_combined_attempts_lose_and_double_nothing(room: Room) -> None:
    accepted, *failure = room.nvim.lua(COMBINE, 7, COUNT)
    assert not failure, (accepted, failure)
    assert accepted > COUNT  # more than one hunk in each case
