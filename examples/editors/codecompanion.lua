-- Neovim with CodeCompanion: in init.lua. Then :CodeCompanionChat. It runs: turnery acp
require("codecompanion").setup({
  interactions = { chat = { adapter = "turnery" } },
  adapters = {
    acp = {
      turnery = function()
        local helpers = require("codecompanion.adapters.acp.helpers")
        return {
          name = "turnery",
          type = "acp",
          formatted_name = "turnery",
          opts = { vision = true },
          roles = { llm = "assistant", user = "user" },
          commands = { default = { "turnery", "acp" } },
          defaults = { mcpServers = {}, timeout = 20000 },
          parameters = {
            protocolVersion = 1,
            clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
            clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
          },
          handlers = {
            setup = function(self)
              return true
            end,
            -- Keys are given beforehand, with `turnery login` or in the environment.
            auth = function(self)
              return true
            end,
            form_messages = function(self, messages, capabilities)
              return helpers.form_messages(self, messages, capabilities)
            end,
            on_exit = function(self, code)
            end,
          },
        }
      end,
    },
  },
})
