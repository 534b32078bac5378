-- A component for lualine: sections = { lualine_x = { require("lcursor.integrations.lualine") } }.

return function()
  return require("lcursor.host.status").text()
end
