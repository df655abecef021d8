-- Neovim with CodeCompanion: in init.lua. Then :CodeCompanionChat. It runs: turnery acp
require("codecompanion").setup({
  interactions = { chat = { adapter = "turnery" } },
  adapters = {
    acp = {
      turnery = {
        name = "turnery",
        type = "acp",
        formatted_name = "turnery",
        roles = { llm = "assistant", user = "user" },
        commands = { default = { "turnery", "acp" } },
        defaults = { timeout = 20000 },
        parameters = {
          protocolVersion = 1,
          clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
          clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
        },
      },
    },
  },
})
