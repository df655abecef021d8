trap '' TERM HUP INT
up='printf u >&9; exec sleep 600'
sh -c "$up" &
(sh -c "$up" &)
setsid sh -c "$up" &
setsid sh -c "setsid sh -c '$up' & exit" &
env -i setsid sh -c "$up" &
env -i setsid sh -c "env -i setsid sh -c '$up' & exit" &
