#!/bin/sh
# Toad, in a terminal: the agent's command, and the project's folder.
exec toad acp "turnery acp" "${1:-.}"
