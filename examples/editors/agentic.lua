-- Neovim with agentic.nvim: in init.lua. Then :lua require("agentic").toggle(). It runs: turnery acp
require("agentic").setup({
  provider = "turnery",
  acp_providers = {
    turnery = { name = "turnery", command = "turnery", args = { "acp" }, env = {} },
  },
})
