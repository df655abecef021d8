;;; agent-shell.el --- turnery in Emacs -*- lexical-binding: t; -*-

;; Emacs with agent-shell: in init.el. Then M-x agent-shell, and choose turnery. It runs: turnery acp

(require 'acp)
(require 'agent-shell)

(add-to-list 'agent-shell-agent-configs
             (agent-shell-make-agent-config
              :identifier 'turnery
              :mode-line-name "turnery"
              :buffer-name "turnery"
              :shell-prompt "turnery> "
              :shell-prompt-regexp "turnery> "
              :client-maker (lambda (buffer)
                              (acp-make-client :command "turnery"
                                               :command-params '("acp")
                                               :context-buffer buffer))))
