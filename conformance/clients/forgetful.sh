#!/bin/sh
# An agent that forgets: all that COMMAND says, but for the lines that contain TEXT.
# usage: forgetful.sh TEXT COMMAND ...
text=$1
shift
"$@" | grep --line-buffered --fixed-strings --invert-match -e "$text"
