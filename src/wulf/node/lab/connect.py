"""Connect to a node and hand the open socket to ssh (``ProxyUseFdpass``); run inside the lab's namespace.

A program of its own that needs only the standard library, because ssh starts it for every connection.
"""

import array
import socket
import sys


def main() -> int:
    """Connect to ``argv[1]:argv[2]`` and pass the descriptor over standard output, which ssh made a socket."""
    try:
        connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
    except OSError as error:
        sys.stderr.write(f"the virtual node does not answer: {error}\n")
        return 1
    connection.settimeout(None)
    with socket.socket(fileno=1) as ssh:
        descriptor = array.array("i", [connection.fileno()])
        ssh.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
