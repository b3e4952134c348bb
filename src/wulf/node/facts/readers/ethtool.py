"""Outputs of ethtool, as text or JSON, of versions 4 to 6 → names and values. Pure.

Values are normalised: ``on``/``off`` for switches, digits for numbers; what the driver does not have
(``n/a``, or not printed) is not in the result.

Source: the show functions of ethtool 5.16, 6.1 and 6.9 (``netlink/*.c``), and ethtool(8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from wulf.base.output_values import Unknown, Unsupported, is_count

_MODE = re.compile(r"(\d{2,7})base\S*?(?:/(Half|Full))?")
#: SPEED_UNKNOWN (-1) as kernels and drivers print it: of 32 bits without sign, of 16 (older ethtool), and 0.
#: No link of 65,535 Mbit/s exists. Source: include/uapi/linux/ethtool.h.
NO_SPEED = ("-1", "4294967295", "65535", "0")
_NOT_AVAILABLE = ("n/a", "unknown!", "unknown", "")


def switches(text: str) -> dict[str, str]:
    """Return the features of ``ethtool -k``: ``on`` or ``off``; one that is fixed has `` [fixed]`` behind it."""
    data = _json(text)
    if data is not None:
        return {
            name: _switch(value["active"]) + (" [fixed]" if value.get("fixed") else "")
            for name, value in data.items()
            if isinstance(value, dict) and isinstance(value.get("active"), bool)
        }
    found: dict[str, str] = {}
    for name, value in _pairs(text):
        words = value.split()
        if words and words[0] in ("on", "off"):
            found[name] = words[0] + (" [fixed]" if "[fixed]" in words else "")
    return found


def coalesce(text: str) -> dict[str, str]:
    """Return the parameters of ``ethtool -c`` by their names in ``ethtool -C``."""
    data = _json(text, _coalesce_names)
    if data is not None:
        return _plain(data)
    found: dict[str, str] = {}
    for line in text.splitlines():
        switch = re.match(r"\s*(Adaptive|CQE mode)\s+RX:\s*(\S+)\s+TX:\s*(\S+)", line)
        if switch:
            kind = "adaptive" if switch[1] == "Adaptive" else "cqe-mode"
            found |= {f"{kind}-rx": switch[2], f"{kind}-tx": switch[3]}
        else:
            found |= dict(_pairs(line))
    return _available(found)


def rings(text: str) -> dict[str, str]:
    """Return the sizes of ``ethtool -g``: ``rx``, ``tx`` …, and ``rx-max``, ``tx-max`` and so on."""
    return _maxima(text)


def channels(text: str) -> dict[str, str]:
    """Return the counts of ``ethtool -l``: ``rx``, ``tx``, ``combined`` …, and ``combined-max`` and so on."""
    return _maxima(text)


def pause(text: str) -> dict[str, str]:
    """Return ``ethtool -a``: ``autoneg``, ``rx``, ``tx``, and ``rx-negotiated`` …, each on or off."""
    data = _json(text)
    if data is not None:
        found = _plain(data)
        agreed = data.get("negotiated")
        if isinstance(agreed, dict):
            found |= {f"{name}-negotiated": value for name, value in _plain(agreed).items()}
    else:
        found = {name.lower().replace(" ", "-"): value for name, value in _pairs(text)}
    if "autonegotiate" in found:
        found["autoneg"] = found.pop("autonegotiate")
    return _available(found)


def eee(text: str) -> dict[str, str]:
    """Return ``ethtool --show-eee``: ``enabled`` and ``active``, each on or off.

    Enabled but inactive means that the partner does not offer it, or that the link is down: nothing sleeps.

    Raises
    ------
    Unsupported
        When the driver or the link has none.
    """
    data = _json(text)
    if data is not None:
        status = str(data.get("status", ""))
    else:
        status = next((value for name, value in _pairs(text) if name.lower() == "eee status"), "")
    if status == "not supported":
        raise Unsupported("the interface has no Energy Efficient Ethernet")
    # JSON has the last word alone: active, inactive or disabled.
    word = status.rpartition(" ")[2]
    if word not in ("active", "inactive", "disabled"):
        raise Unknown("ethtool does not say")
    return {"enabled": _switch(word != "disabled"), "active": _switch(word == "active")}


def driver(text: str) -> dict[str, str]:
    """Return ``ethtool -i``: ``driver``, ``version``, ``firmware-version`` and so on."""
    data = _json(text)
    return _plain(data) if data is not None else _available(dict(_pairs(text)))


def link(text: str) -> dict[str, str]:
    """Return ``ethtool IF``: ``speed`` [Mbit/s], ``duplex``, ``autoneg``, ``link``, and speeds [Mbit/s] of modes.

    ``speed-max`` is the fastest mode that the interface supports, ``speed-max-advertised`` the fastest that it offers
    its partner, ``speed-max-partner`` the fastest that the partner offers.
    """
    data = _json(text)
    if data is not None:
        found = _plain({name: value for name, value in data.items() if not isinstance(value, list)})
        modes = {key: _listed_modes(data, name) for key, name in _MODES.items()}
        found = {
            "speed": found.get("speed", ""),
            "duplex": found.get("duplex", "").lower(),
            "autoneg": found.get("auto-negotiation", ""),
            "link": found.get("link-detected", ""),
        }
    else:
        lines = dict(_pairs(text))
        speed = re.fullmatch(r"(\d+)Mb/s", lines.get("Speed", ""))
        found = {
            "speed": speed[1] if speed else "",
            # Unknown! (255)
            "duplex": lines.get("Duplex", "").lower().split(" ")[0],
            "autoneg": lines.get("Auto-negotiation", ""),
            "link": {"yes": "on", "no": "off"}.get(lines.get("Link detected", "").split(" ")[0], ""),
        }
        modes = {key: _block(text, f"{name} link modes") for key, name in _MODES.items()}
    for key, words in modes.items():
        speeds = [int(mode[1]) for mode in _MODE.finditer(words)]
        if speeds:
            found[key] = str(max(speeds))
    return _available(found) if found["speed"] not in NO_SPEED else _available(found | {"speed": ""})


#: Speed of a list of modes → what ethtool calls the list.
_MODES = {
    "speed-max": "Supported",
    "speed-max-advertised": "Advertised",
    "speed-max-partner": "Link partner advertised",
}


def _block(text: str, title: str) -> str:
    """Return the modes behind a title, on its line and on those below it that have no title."""
    found = re.search(rf"^\s*{title}:(.*(?:\n\s+[^\s:]+(?: [^\s:]+)*\s*$)*)", text, re.MULTILINE)
    return found[1] if found else ""


def _listed_modes(data: dict[str, Any], title: str) -> str:
    name = f"{title.lower().replace(' ', '-')}-link-modes"
    listed = data.get(name)
    return " ".join(str(mode) for mode in listed) if isinstance(listed, list) else ""


def statistics(text: str) -> dict[str, int]:
    """Return the counters of ``ethtool -S``, by the driver's names."""
    found = {}
    for name, value in _pairs(text):
        if is_count(value):
            found[name] = int(value)
    return found


def _maxima(text: str) -> dict[str, str]:
    data = _json(text)
    if data is not None:
        return _plain(data)
    found = {}
    suffix = ""
    for line in text.splitlines():
        if line.startswith("Pre-set maximums"):
            suffix = "-max"
        elif line.startswith("Current hardware settings"):
            suffix = ""
        else:
            for name, value in _pairs(line):
                found[name.lower().replace(" ", "-") + suffix] = value
    return _available(found)


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip():
            pairs.append((name.strip(), value.strip()))
    return pairs


def _available(found: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in found.items() if value.lower() not in _NOT_AVAILABLE}


def _coalesce_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Tell the two pairs ``rx`` and ``tx`` apart that versions before 6.14 print: adaptive first, CQE mode last."""
    found: dict[str, Any] = {}
    kind = "adaptive"
    for name, value in pairs:
        if name in ("rx", "tx"):
            found[f"{kind}-{name}"] = value
            continue
        if name != "ifname":
            kind = "cqe-mode"
        found[name] = value
    return found


def _json(
    text: str, names: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None
) -> dict[str, Any] | None:
    """Return the one interface of a JSON answer; None when it is not JSON."""
    if not text.lstrip().startswith("["):
        return None
    try:
        data = json.loads(text, object_pairs_hook=names)
    except (ValueError, RecursionError):
        return None
    return data[0] if data and isinstance(data[0], dict) else None


def _plain(data: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in data.items():
        if isinstance(value, bool):
            found[name] = _switch(value)
        elif isinstance(value, str | int):
            found[name] = str(value)[:200]
    return _available(found)


def _switch(value: bool) -> str:
    return "on" if value else "off"
