-- Language servers inside Neovim: tables of functions instead of processes. They read buffers
-- themselves, so that no text is ever synchronized. Also starts clients of them.

local M = {}

local api = vim.api
local ENCODINGS = { "utf-8", "utf-16", "utf-32" } -- the best first
-- Codes of the protocol. The first key would wait for the module that has them by name.
local CANCELLED, NOT_FOUND = -32800, -32601

---@class (exact) lcursor.LspCall a request that is being answered
---@field params table
---@field encoding string of columns on the wire
---@field reply fun(err?: lsp.ResponseError, result?: any) ends it
---@field cancel? fun() set while there is something to stop

---@alias lcursor.LspHandlers table<string, fun(call: lcursor.LspCall)> by method

--- Return the loaded buffer of a URI. `vim.uri_to_bufnr` would make one where there is none.
---@param uri string
---@return integer?
function M.buffer(uri)
  local here = api.nvim_get_current_buf()
  if vim.uri_from_bufnr(here) == uri then
    return here
  end
  return vim.iter(api.nvim_list_bufs()):find(function(buf)
    return api.nvim_buf_is_loaded(buf) and vim.uri_from_bufnr(buf) == uri
  end)
end

---@param params table of `initialize`
---@return string
local function encoding_for(params)
  local offered = vim.tbl_get(params, "capabilities", "general", "positionEncodings")
  for _, encoding in ipairs(ENCODINGS) do
    if vim.list_contains(offered or {}, encoding) then
      return encoding
    end
  end
  return "utf-16"
end

--- Run a server: what the `cmd` of a client does.
---@param capabilities lsp.ServerCapabilities without an encoding, the best is chosen
---@param handlers lcursor.LspHandlers
---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
function M.run(capabilities, handlers, dispatchers)
  local last_id, encoding, is_closing = 0, "utf-16", false
  ---@type table<integer, lcursor.LspCall>
  local calls = {}

  ---@param id integer
  local function cancel(id)
    local call = calls[id]
    if call and call.cancel then
      call.cancel()
      call.reply({ code = CANCELLED, message = "cancelled" })
    end
  end

  local function close()
    if not is_closing then
      is_closing = true
      vim.iter(vim.tbl_keys(calls)):each(cancel)
      dispatchers.on_exit(0, 0)
    end
  end

  ---@type lcursor.LspHandlers
  local own = {
    initialize = function(call)
      encoding = capabilities.positionEncoding or encoding_for(call.params)
      call.reply(nil, {
        capabilities = vim.tbl_extend("force", capabilities, { positionEncoding = encoding }),
        serverInfo = { name = "lcursor" },
      })
    end,
    shutdown = function(call)
      call.reply(nil, nil)
    end,
  }

  ---@param method string
  ---@param params? table
  ---@param callback fun(err?: lsp.ResponseError, result?: any)
  ---@param notify_reply? fun(id: integer)
  ---@return boolean sent
  ---@return integer? id
  local function request(method, params, callback, notify_reply)
    if is_closing then
      return false
    end
    last_id = last_id + 1
    local id = last_id
    local function reply(err, result)
      calls[id] = nil
      if notify_reply then
        notify_reply(id)
      end
      -- As in Neovim's transport: a cancelled request gets no answer.
      if not err or err.code ~= CANCELLED then
        callback(err, result)
      end
    end
    local call = { params = params or {}, encoding = encoding, reply = reply }
    calls[id] = call
    local handle = own[method] or handlers[method]
    if handle then
      handle(call)
    else
      reply({ code = NOT_FOUND, message = "lcursor does not support " .. method })
    end
    return true, id
  end

  ---@param method string
  ---@param params? table
  ---@return boolean sent
  local function notified(method, params)
    if method == "$/cancelRequest" then
      cancel(params and params.id)
    elseif method == "exit" then
      close()
    end
    return true
  end

  return {
    request = request,
    notify = notified,
    is_closing = function()
      return is_closing
    end,
    terminate = close,
  }
end

---@type table<lcursor.LspHandlers, table<string, integer>> ids by encoding
local clients = {}

--- Return the client of a server with an encoding, which is started unless it runs.
---@param name string
---@param capabilities lsp.ServerCapabilities
---@param handlers lcursor.LspHandlers
---@return vim.lsp.Client?
function M.client(name, capabilities, handlers)
  local ids, encoding = clients[handlers] or {}, capabilities.positionEncoding or ""
  clients[handlers] = ids
  local client = ids[encoding] and vim.lsp.get_client_by_id(ids[encoding])
  if client and not client:is_stopped() then
    return client
  end
  ids[encoding] = vim.lsp.start({
    name = name,
    cmd = function(dispatchers)
      return M.run(capabilities, handlers, dispatchers)
    end,
    flags = { debounce_text_changes = 0 }, -- without it, a timer starts at each key
  }, {
    attach = false,
    silent = true,
    reuse_client = function()
      return false -- there may be others of this name
    end,
  })
  return ids[encoding] and vim.lsp.get_client_by_id(ids[encoding])
end

--- Attach a client to a buffer. The LspAttach handlers of the user, which map keys to what other
--- servers can do, do not hear of it.
---@param client vim.lsp.Client
---@param buf integer
function M.attach(client, buf)
  local ignored = vim.o.eventignore
  vim.opt.eventignore:append("LspAttach")
  pcall(vim.lsp.buf_attach_client, buf, client.id)
  vim.o.eventignore = ignored
end

return M
