"""flood.py HOST PORT COUNT: so many connections that say nothing, garbage, or the beginning of something; all held
open at once until every one was made."""

import random
import resource
import socket
import sys

noise = random.Random(5)
WORDS = [b"", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01", noise.randbytes(2000), b"\x00\x20N" + bytes(20)]


def main(host, port, count):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = []
    refused = 0
    for i in range(count):
        try:
            connection = socket.create_connection((host, port), timeout=5)
            connection.sendall(WORDS[i % len(WORDS)])
            held.append(connection)
        except ConnectionError:
            refused += 1
    print(f"{len(held)} made, {refused} refused")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
