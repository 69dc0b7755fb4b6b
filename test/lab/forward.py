"""forward.py FROM TO: carries connections from one door to another: unix:/path or tcp:host:port.

The lab's zedctl runs on the host, where it costs nothing, and speaks to the controller's UNIX socket inside
an emulated machine by two of these, one on either side of the wire.
"""

import socket
import sys
import threading


def address_of(text):
    kind, rest = text.split(":", 1)
    if kind == "unix":
        return socket.AF_UNIX, rest
    host, port = rest.rsplit(":", 1)
    return socket.AF_INET, (host, int(port))


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def carry(connection, target):
    family, address = address_of(target)
    with connection, socket.socket(family) as other:
        try:
            other.connect(address)
        except OSError:
            return
        back = threading.Thread(target=pump, args=(other, connection))
        back.start()
        pump(connection, other)
        back.join()


def main():
    family, address = address_of(sys.argv[1])
    with socket.socket(family) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        door.listen(64)
        while True:
            connection, _ = door.accept()
            threading.Thread(target=carry, args=(connection, sys.argv[2]), daemon=True).start()


if __name__ == "__main__":
    main()
