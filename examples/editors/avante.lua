-- Neovim with avante.nvim: in init.lua. Then :AvanteChat. It runs: turnery acp
-- avante.nvim hands on PATH and nothing else: name here what turnery shall see.
require("avante").setup({
  provider = "turnery",
  acp_providers = {
    turnery = {
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
