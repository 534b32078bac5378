-- The virtual lines of all pieces that stand below one row, for one extmark: Neovim keeps no order
-- among several at one place. Owns the lines while they are drawn; draws nothing itself.

local M = {}

---@class (exact) lcursor.EditStack what stands below one row
---@field pieces lcursor.EditChunk[][][] lines by the place of their piece
---@field count integer pieces that there will be
---@field drawn integer lines that were handed out since the first piece came
---@field fresh integer lines that came since then
---@field mark? integer

--- Say which pieces stand below the same row.
---@param pieces lcursor.EditPiece[] in the order of their rows
function M.build(pieces)
  ---@type lcursor.EditStack?, integer?
  local stack, row
  for _, piece in ipairs(pieces) do
    if piece.last > piece.first then
      if not stack or piece.block.last ~= row then
        stack = { pieces = {}, count = 0, drawn = 0, fresh = 0 }
        row = piece.block.last
      end
      stack.count = stack.count + 1
      piece.stack, piece.place = stack, stack.count
    end
  end
end

--- Take the lines of a piece; pieces come in their order, later once more with their colours.
---@param piece lcursor.EditPiece
---@param lines lcursor.EditChunk[][]
---@return lcursor.EditChunk[][]? all lines of the stack; nil while that is too early: they are put
---as a whole, so when they are twice as many, and at the last piece
function M.put(piece, lines)
  local stack = assert(piece.stack)
  if piece.place == 1 then
    stack.drawn, stack.fresh = 0, 0
  end
  stack.pieces[piece.place] = lines
  stack.fresh = stack.fresh + #lines
  if piece.place < stack.count and stack.fresh < stack.drawn then
    return nil
  end
  stack.drawn, stack.fresh = stack.drawn + stack.fresh, 0
  local all = {}
  for _, some in ipairs(stack.pieces) do
    vim.list_extend(all, some)
  end
  return all
end

return M
