# Prints what else of a node has to stay as it is. What systemd and its journal keep for themselves is no part of it.
section() { echo "== $1"; shift; "$@" 2>&1; }
section temporary find /tmp /var/tmp /dev/shm -mindepth 1
section run sh -c "find /run -mindepth 1 -maxdepth 3 -not -path '/run/log/*' -not -path '/run/systemd/*' -not -path '/run/wulf/*' | sort"
section run-of-wulf sh -c "ls -A /run/wulf | grep -v -x -e lock -e '.*[.]asked' -e '.*[.]until' -e '.*[.]lock'"
section transient ls -A /run/systemd/transient
section processes sh -c "ps -e -o ppid=,args= | awk '\$1 <= 1 { \$1 = \"\"; print }' | grep -v -e ' ps -e' -e ' sh -c' -e nsenter | sort"
section all-units sh -c "systemctl list-units --all --plain --no-legend | awk '{ print \$1, \$2, \$3, \$4 }' | sort"
section timers sh -c "systemctl list-timers --all --no-legend | awk '{ print \$(NF - 1) }' | sort"
section crontab sh -c "crontab -l; ls -lA /var/spool/cron/crontabs"
section mounts sh -c "awk '{ print \$1, \$2, \$3 }' /proc/mounts | sort"
section planted sh -c "cd /var/lib/planted && grep -r --exclude=cpu_dma_latency . . | sort"
