"""A name server: hN.test has the address 10.77.0.N; other names do not exist. Argument: the address to listen on."""
import re
import socket
import sys

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[1], 53))
print("serving", flush=True)
while True:
    query, peer = server.recvfrom(512)
    end = query.index(b"\0", 12) + 5  # name, type, class
    kind = int.from_bytes(query[end - 4:end - 2], "big")
    host = re.fullmatch(rb"\x02h(\d)\x04test\0", query[12:end - 4])
    answers = 1 if host and kind == 1 else 0
    flags = b"\x81\x80" if host else b"\x81\x83"
    reply = query[:2] + flags + b"\0\1" + bytes([0, answers]) + b"\0\0\0\0" + query[12:end]
    if answers:
        reply += b"\xc0\x0c\0\1\0\1\0\0\0\x05\0\4" + bytes([10, 77, 0, int(host[1])])
    server.sendto(reply, peer)
