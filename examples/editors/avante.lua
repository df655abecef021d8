-- Neovim with avante.nvim: in init.lua. Then :AvanteChat. It runs: turnery acp
require("avante").setup({
  provider = "turnery",
  acp_providers = {
    turnery = { command = "turnery", args = { "acp" }, env = {} },
  },
})
