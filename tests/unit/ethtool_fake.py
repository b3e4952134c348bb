"""An `ethtool` of a card that this machine has not: it answers, refuses and rounds as drivers do.

A program of the shell: the guard's tests call it thousands of times.
"""

from __future__ import annotations

#: What the card has, by name of the shell: a group of ethtool's and what it shows there.
CARD = {
    "channels_combined": "8",
    "coalesce_adaptive_rx": "off",
    "coalesce_rx_frames": "16",
    "coalesce_rx_usecs": "8",
    "coalesce_tx_usecs": "30",
    "eee_eee": "on",
    "feature_gro": "on",
    "feature_tx_tcp6_segmentation": "off",
    "feature_tx_tcp_segmentation": "on",
    "pause_autoneg": "on",
    "pause_rx": "on",
    "pause_tx": "off",
    "ring_rx": "512",
    "ring_tx": "256",
}
#: The file in which it has that, in the directory PLACE.
FILE = "card"


def text(card: dict[str, str]) -> str:
    """Return the file of a card in this state."""
    return "".join(f"{name}={value}\n" for name, value in card.items())


def state(content: str) -> dict[str, str]:
    """Return what a card has, of its file."""
    return dict(line.split("=", 1) for line in content.splitlines())


PROGRAM = (
    f"""\
#!/bin/sh
all='{" ".join(CARD)}'
. "$PLACE/{FILE}"
"""
    + r"""
fail() { printf '%b\n' "$1" >&2; exit 1; }
bad() { fail 'ethtool: bad command line argument(s)'; }
number() { case $1 in '' | *[!0-9]*) bad ;; esac; }
named() { # GROUP KEY: `is` is the name in the shell
    local IFS=-
    set -- $1 $2
    IFS=_
    is="$*"
}
modified() { # GROUP KEY VALUE ...: there is no change without one
    local group="$1" is at
    shift
    while [ $# -gt 1 ]; do
        named "$group" "$1"
        eval "at=\$$is"
        [ "$at" = "$2" ] || return 0
        shift 2
    done
    fail "no $group parameters changed, aborting"
}
put() { named "$1" "$2"; eval "$is=\$3"; }
flag=$1 name=$2
shift 2
case $flag in
-c)
    printf 'Coalesce parameters for %s:\nAdaptive RX: %s  TX: n/a\n' "$name" "$coalesce_adaptive_rx"
    printf 'stats-block-usecs:\tn/a\n\nrx-usecs:\t%s\n' "$coalesce_rx_usecs"
    printf 'rx-frames:\t%s\nrx-usecs-irq:\tn/a\n\n' "$coalesce_rx_frames"
    printf 'tx-usecs:\t%s\n\nCQE mode RX: off  TX: n/a\n\n' "$coalesce_tx_usecs"
    exit ;;
-g)
    printf 'Ring parameters for %s:\nPre-set maximums:\n' "$name"
    printf 'RX:\t\t4096\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t4096\nCurrent hardware settings:\n'
    printf 'RX:\t\t%s\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t%s\n' "$ring_rx" "$ring_tx"
    exit ;;
-l)
    printf 'Channel parameters for %s:\nPre-set maximums:\n' "$name"
    printf 'RX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t8\nCurrent hardware settings:\n'
    printf 'RX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t%s\n' "$channels_combined"
    exit ;;
-a)
    printf 'Pause parameters for %s:\nAutonegotiate:\t%s\n' "$name" "$pause_autoneg"
    printf 'RX:\t\t%s\nTX:\t\t%s\n' "$pause_rx" "$pause_tx"
    [ "$pause_autoneg" = off ] || printf 'RX negotiated: on\nTX negotiated: on\n'
    exit ;;
--show-eee)
    said=disabled
    [ "$eee_eee" = off ] || said='enabled - active'
    printf 'EEE settings for %s:\n\tEEE status: %s\n\tTx LPI: 17 (us)\n' "$name" "$said"
    exit ;;
-k)
    tso=off
    case "$feature_tx_tcp_segmentation $feature_tx_tcp6_segmentation" in *on*) tso=on ;; esac
    printf 'Features for %s:\nrx-checksumming: on [fixed]\ntcp-segmentation-offload: %s\n' "$name" "$tso"
    printf '\ttx-tcp-segmentation: %s\n\ttx-tcp6-segmentation: %s\n' "$feature_tx_tcp_segmentation" \
        "$feature_tx_tcp6_segmentation"
    printf '\ttx-tcp-ecn-segmentation: off [fixed]\ngeneric-receive-offload: %s\n' "$feature_gro"
    printf 'large-receive-offload: off [fixed]\n'
    exit ;;
-C)
    modified coalesce "$@"
    while [ $# -gt 1 ]; do
        if [ "$1" = adaptive-rx ]; then
            coalesce_adaptive_rx=$2
            [ "$2" = off ] || coalesce_rx_usecs=64
        else
            number "$2"
            [ "$2" -le 1022 ] ||
                fail 'netlink error: requested value out of range\nnetlink error: Numerical result out of range'
            [ "$1 $coalesce_adaptive_rx" = 'rx-usecs on' ] || put coalesce "$1" $(($2 / 2 * 2))
        fi
        shift 2
    done ;;
-G)
    modified ring "$@"
    while [ $# -gt 1 ]; do
        number "$2"
        [ "$2" -le 4096 ] ||
            fail 'netlink error: requested ring size exceeds maximum\nnetlink error: Invalid argument'
        put ring "$1" $(($2 / 8 * 8))
        shift 2
    done ;;
-L)
    modified channels "$@"
    number "$2"
    [ "$2" -le 8 ] ||
        fail 'netlink error: requested channel count exceeds maximum\nnetlink error: Invalid argument'
    put channels "$1" "$2" ;;
-A)
    modified pause "$@"
    while [ $# -gt 1 ]; do
        case $2 in on | off) put pause "$1" "$2" ;; *) bad ;; esac
        shift 2
    done ;;
--set-eee)
    case $2 in on | off) put eee "$1" "$2" ;; *) bad ;; esac ;;
-K)
    while [ $# -gt 1 ]; do
        [ "$1 $2" != 'lro on' ] || fail 'Could not change any device features'
        if [ "$1" = tso ]; then # all features of a group at once
            feature_tx_tcp_segmentation=$2 feature_tx_tcp6_segmentation=$2
        else
            put feature "$1" "$2"
        fi
        shift 2
    done ;;
*) bad ;;
esac
for one in $all; do eval "echo $one=\$$one"; done >"$PLACE/"""
    + FILE
    + '"\n'
)
