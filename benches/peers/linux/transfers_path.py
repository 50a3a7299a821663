"""A path between two hosts of a Linux kernel, in user space: two TUN devices, each in a network namespace of its own.

One process is the path and both applications, so that what happens at one instant happens in one order: a packet is
written into a device, the kernel answers it before the call returns, the application of that host has its turn, and
what the host sent is read back. In a kernel whose clock stands still while anything works all that takes no time.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import socket
import struct
import time
from pathlib import Path

from booted import LIBC, enter, shell
from transfers_cases import MSS, REQUEST, Case
from transfers_packets import ACK, FIN, SYN, Numbers, Packet, changed
from transfers_words import client_bytes, client_words, server_bytes, server_words, window_words

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLIENT, SERVER = 0, 1
HOSTS = ("C", "S")
ADDRESSES = ("10.0.0.1", "10.0.0.2")
PORT = 5201
TCP_CLOSE = 7
PATIENCE_NS = 200_000_000_000
"""Longer than any timer of TCP that is met here."""


def build_hosts(sends_bursts: bool) -> list[int]:
    """Makes both hosts; returns the path's ends of their devices. With bursts, TCP hands several segments at once to
    the device and lets it part them (GSO).
    """
    devices = []
    for host, address, peer in zip(HOSTS, ADDRESSES, reversed(ADDRESSES), strict=True):
        shell(f"ip netns add {host}")
        enter(host)
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"tun0", IFF_TUN | IFF_NO_PI))
        devices.append(device)
        shell("ip link set lo up")
        # A queue that nothing overflows.
        shell("ip link set tun0 txqueuelen 10000")
        if not sends_bursts:
            shell("ethtool -K tun0 tso off gso off gro off")
            shell("ip link set tun0 gso_max_segs 1")
        shell("ip link set tun0 up")
        shell(f"ip addr add {address} peer {peer} dev tun0")
        for key, value in {
            "tcp_no_metrics_save": "1",
            # The whole answer fits: what the application does in the meantime is not part of the comparison.
            "tcp_wmem": "4096 16777216 16777216",
        }.items():
            Path(f"/proc/sys/net/ipv4/{key}").write_text(value)
    return devices


class Timespec(ctypes.Structure):
    """struct timespec."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Watched(ctypes.Structure):
    """struct pollfd."""

    _fields_ = (("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short))


def begin_after(now_ns: int) -> int:
    """When the next transfer begins: the slots of the kernel's timer wheel are multiples of up to 4096 ticks of its
    longer timers here, counted from 300 s before it started (INITIAL_JIFFIES), and their phase is the same every time.
    """
    ticks = now_ns // 1_000_000 + 1000 - 300_000
    return (-(-ticks // 4096) * 4096 + 300_000) * 1_000_000


def wait(devices: list[int], until_ns: int) -> None:
    """Waits until a device has a packet, or until that time, to the nanosecond."""
    left = max(0, until_ns - time.monotonic_ns())
    watched = (Watched * len(devices))(*(Watched(device, 1, 0) for device in devices))
    span = Timespec(left // 1_000_000_000, left % 1_000_000_000)
    LIBC.ppoll(watched, len(devices), ctypes.byref(span), None)


class Script:
    """What becomes of which packet."""

    def __init__(self, rules: tuple[str, ...]) -> None:
        self.fates: dict[tuple[str, int, int], tuple[str, int]] = {}
        self.always: tuple[list[str], list[str]] = ([], [])
        for rule in rules:
            do, what, *numbers = rule.split()
            if numbers == ["*"]:
                self.always[("client", "server").index(what)].append(do)
                continue
            attempt, amount = ([int(word) for word in numbers[1:]] + [1, 0][len(numbers) - 1 :])[:2]
            for number in numbers[0].split(","):
                self.fates[what, int(number), attempt] = (do, amount)
        self.seen: dict[tuple[str, int], int] = {}

    def count(self, what: str, number: int = 0) -> int:
        """Counts one more of them."""
        self.seen[what, number] = self.seen.get((what, number), 0) + 1
        return self.seen[what, number]

    def fate(self, packet: Packet, sender: int) -> tuple[str, int]:
        """What a packet's rule says."""
        if packet.flags & SYN:
            what = "synack" if packet.flags & ACK else "syn"
        elif packet.payload and sender == SERVER:
            segment = (packet.seq - 1) // MSS + 1
            keys = [("data", segment, self.count("data", segment)), ("payload", self.count("payload"), 1)]
            return next((self.fates[key] for key in keys if key in self.fates), ("pass", 0))
        elif packet.payload:
            what = "request"
        elif packet.flags & FIN:
            what = "fin" if sender == SERVER else "client fin"
        elif sender == SERVER:
            what = "server ack"
        else:
            acked = -(-(packet.ack - 1) // MSS)
            keys = [("acked", acked, self.count("acked", acked)), ("ack", self.count("ack"), 1)]
            return next((self.fates[key] for key in keys if key in self.fates), ("pass", 0))
        return self.fates.get((what, self.count(what), 1), ("pass", 0))


class Transfer:
    """One case: the path, and the applications at its ends."""

    def __init__(self, case: Case, devices: list[int]) -> None:
        self.case = case
        self.devices = devices
        self.script = Script(case.rules)
        self.numbers = Numbers()
        self.free_at = [0, 0]
        self.due: list[tuple[int, int, int, bytes]] = []
        self.order = 0
        self.held: list[tuple[int, int, bytes]] = []
        self.sent: tuple[list[tuple[int, Packet, str]], list[tuple[int, Packet, str]]] = ([], [])
        self.windows: list[tuple[int, str]] = []
        self.completed_ns: int | None = None
        self.received = 0
        self.answered = self.asked = self.client_closed = self.server_closed = False
        self.parts = list(case.parts) or [case.segments]
        self.written = 0
        self.writes_at: int | None = None
        """When the server has the next part."""
        self.retransmits = 0
        self.accepted: socket.socket | None = None
        self.listener, self.client = (self.socket_on(end) for end in (SERVER, CLIENT))

    def socket_on(self, end: int) -> socket.socket:
        """A socket of a host."""
        enter(HOSTS[end])
        accurate = self.case.peers[end] if self.case.option else 3
        Path("/proc/sys/net/ipv4/tcp_ecn").write_text(str(accurate if self.case.accurate else int(self.case.ecn)))
        if self.case.accurate:
            Path("/proc/sys/net/ipv4/tcp_ecn_option").write_text(str(self.case.option))
        Path("/proc/sys/net/ipv4/tcp_sack").write_text(str(int(self.case.has_sack)))
        made = socket.socket()
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.case.controller.encode())
        made.setblocking(False)
        if end == SERVER:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((ADDRESSES[SERVER], PORT))
            made.listen(1)
        return made

    def run(self) -> dict[str, object]:
        """The whole of it; returns the record."""
        self.start = begin_after(time.monotonic_ns())
        while time.monotonic_ns() < self.start:
            wait(self.devices, self.start)
            self.drain()
        with contextlib.suppress(BlockingIOError):
            self.client.connect((ADDRESSES[SERVER], PORT))
        end = self.start + PATIENCE_NS
        while not self.is_over() and time.monotonic_ns() < end:
            self.collect()
            while self.due and self.due[0][0] <= time.monotonic_ns():
                _, _, to, raw = heapq.heappop(self.due)
                self.hand(to, raw)
            if self.writes_at is not None and self.writes_at <= time.monotonic_ns():
                self.write_part()
            until = min(self.due[0][0] if self.due else end, self.writes_at or end)
            wait(self.devices, until)
        for each in (self.client, self.listener, self.accepted):
            if each is not None:
                each.close()
        return {
            "group": self.case.group,
            "name": self.case.name,
            "segments": self.case.segments,
            "rules": list(self.case.rules),
            **({"peers": list(self.case.peers)} if self.case.option else {}),
            **({"parts": list(self.case.parts), "pause_ms": self.case.pause_ms} if self.case.parts else {}),
            "completed_us": None if self.completed_ns is None else round(self.completed_ns / 1e3),
            "retransmits": self.retransmits,
            "sent": sum(packet.payload > 0 for _, packet, _ in self.sent[SERVER]),
            **self.story(),
        }

    def story(self) -> dict[str, str]:
        """Every packet and every window of a transfer of moderate size; of others what the server sent again."""
        server = self.sent[SERVER]
        if self.case.option:
            return {
                "server": server_bytes(server),
                "client": client_bytes(self.sent[CLIENT]),
                "cwnd": window_words(self.windows),
            }
        if self.case.is_told:
            return {
                "server": server_words(server),
                "client": client_words(self.sent[CLIENT]),
                "cwnd": window_words(self.windows),
            }
        again, highest = [], 0
        for at, packet, do in server:
            if packet.payload and packet.seq < highest:
                again.append((at, packet, do))
            highest = max(highest, packet.seq + packet.payload)
        # A window a round trip and more is enough.
        coarse: list[tuple[int, str]] = []
        for at, window in self.windows:
            if not coarse or at - coarse[-1][0] > self.case.route.rtt_ms * 1_000_000:
                coarse.append((at, window))
        is_random = "random" in self.case.group
        return {"again": server_words(again)} | ({} if is_random else {"cwnd": window_words(coarse)})

    def is_over(self) -> bool:
        """Whether nothing is on its way and both ends are through."""
        if self.due or self.held or self.accepted is None or not self.client_closed:
            return False
        return self.state(self.accepted) == TCP_CLOSE and self.state(self.client) == TCP_CLOSE

    def state(self, end: socket.socket) -> int:
        """The TCP state of a socket."""
        return end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]

    def drain(self) -> None:
        """Throws away what the hosts sent of other transfers."""
        for device in self.devices:
            with contextlib.suppress(BlockingIOError):
                while os.read(device, 65_536):
                    pass

    def collect(self) -> None:
        """Takes what the hosts have sent onto the path."""
        for sender, device in enumerate(self.devices):
            while True:
                try:
                    raw = os.read(device, 65_536)
                except BlockingIOError:
                    break
                packet = self.numbers.read(raw, sender)
                if packet is not None:
                    self.send(packet, sender)
                    if sender == SERVER:
                        self.note_window()

    def send(self, packet: Packet, sender: int) -> None:
        """A packet enters the path."""
        now = time.monotonic_ns()
        do, amount = self.script.fate(packet, sender)
        self.sent[sender].append((now - self.start, packet, do))
        route = self.case.route
        if do == "lose":
            return
        leaves = max(now, self.free_at[sender])
        if do == "stall":
            leaves += amount * 1_000_000
        leaves += len(packet.raw) * 8 * 1_000_000_000 // route.rate_bps
        self.free_at[sender] = leaves
        raw = changed(packet.raw, do)
        for each in self.script.always[sender]:
            raw = changed(raw, each)
        if do == "hold":
            self.held.append((amount, sender, raw))
            return
        late = amount * 1_000_000 if do == "late" else 0
        arrives = leaves + route.rtt_ms * 500_000 + late
        self.put(arrives, sender, raw)
        self.held = [(left - (end == sender), end, one) for left, end, one in self.held]
        for _, end, one in [entry for entry in self.held if entry[0] == 0]:
            self.put(arrives, end, one)
        self.held = [entry for entry in self.held if entry[0] > 0]

    def put(self, arrives: int, sender: int, raw: bytes) -> None:
        """A packet is on its way."""
        self.order += 1
        heapq.heappush(self.due, (arrives, self.order, 1 - sender, raw))

    def hand(self, to: int, raw: bytes) -> None:
        """The host gets a packet, and its application has its turn."""
        os.write(self.devices[to], raw)
        self.collect()
        if to == CLIENT:
            self.attend_client()
        else:
            self.attend_server()
            self.note_window()
        self.collect()

    def attend_client(self) -> None:
        """Asks when connected, reads what came, closes when the server has."""
        with contextlib.suppress(BlockingIOError):
            if not self.asked:
                self.client.send(bytes(REQUEST))
                self.asked = True
            while not self.client_closed and self.asked:
                came = len(self.client.recv(1 << 20))
                self.received += came
                if came and self.received == self.case.segments * MSS:
                    self.completed_ns = time.monotonic_ns() - self.start
                elif came and self.received == self.written:
                    self.writes_at = time.monotonic_ns() + self.case.pause_ms * 1_000_000
                if came == 0:
                    self.client.shutdown(socket.SHUT_WR)
                    self.client_closed = True

    def attend_server(self) -> None:
        """Answers when asked, and closes."""
        with contextlib.suppress(BlockingIOError):
            if self.accepted is None:
                self.accepted, _ = self.listener.accept()
                self.accepted.setblocking(False)
            if not self.answered:
                # One small segment: it is there as a whole.
                assert len(self.accepted.recv(1 << 16)) == REQUEST
                self.answered = True
                self.write_part()

    def write_part(self) -> None:
        """The server writes the next part of its answer, and closes after the last."""
        assert self.accepted is not None
        self.writes_at = None
        part = bytes(self.parts.pop(0) * MSS)
        assert self.accepted.send(part) == len(part)
        self.written += len(part)
        self.collect()
        if not self.parts:
            self.accepted.shutdown(socket.SHUT_WR)
            self.collect()

    def note_window(self) -> None:
        """What TCP_INFO says of the server's window, if it is news."""
        if self.accepted is None:
            return
        words = struct.unpack_from("<8B24I", self.accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104))
        if words[0] == TCP_CLOSE:
            return
        self.retransmits = words[8 + 23]
        window = f"{words[8 + 18]}" + (f"/{words[8 + 17]}" if words[8 + 17] < 0x7FFFFFFF else "")
        if not self.windows or self.windows[-1][1] != window:
            self.windows.append((time.monotonic_ns() - self.start, window))
