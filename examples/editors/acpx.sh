#!/bin/sh
# acpx, for scripts: one prompt, and reading needs no question. With acpx.json as ~/.acpx/config.json the
# agent has a name, and the same is: acpx --approve-reads turnery exec "$1"
exec acpx --approve-reads --agent "turnery acp" exec "${1:?what shall it do}"
