-- Neovim with agentic.nvim: in init.lua. Then :lua require("agentic").toggle(). It runs: turnery acp
-- Some versions of agentic.nvim hand on PATH and nothing else: name here what turnery shall see.
require("agentic").setup({
  provider = "turnery",
  acp_providers = {
    turnery = {
      name = "turnery",
      command = "turnery",
      args = { "acp" },
      env = {
        HOME = os.getenv("HOME"),
        XDG_CONFIG_HOME = os.getenv("XDG_CONFIG_HOME"),
        XDG_DATA_HOME = os.getenv("XDG_DATA_HOME"),
        ANTHROPIC_API_KEY = os.getenv("ANTHROPIC_API_KEY"),
        OPENAI_API_KEY = os.getenv("OPENAI_API_KEY"),
      },
    },
  },
})
