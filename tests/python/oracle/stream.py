"""The engine's named random streams, written again: xoshiro256++ (Blackman and Vigna 2019).

A stream is named by a seed and a path. The path is hashed with FNV-1a, seed and hash are mixed by the finalizer of
splitmix64, and splitmix64 (Steele, Lea and Flood 2014) fills the generator's four words.
"""

from __future__ import annotations

import copy

_WORD = (1 << 64) - 1


class Stream:
    """The stream called ``path`` of ``seed``."""

    def __init__(self, seed: int, path: str) -> None:
        name = 0xCBF29CE484222325
        for byte in path.encode():
            name = ((name ^ byte) * 0x100000001B3) & _WORD
        filler = mixed(seed) ^ mixed(name)
        words = []
        for _ in range(4):
            filler = (filler + 0x9E3779B97F4A7C15) & _WORD
            words.append(mixed(filler))
        self._words = words

    def bits(self) -> int:
        """Sixty-four random bits."""
        s0, s1, s2, s3 = self._words
        result = (_rotated((s0 + s3) & _WORD, 23) + s0) & _WORD
        shifted = (s1 << 17) & _WORD
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = _rotated(s3, 45)
        self._words = [s0, s1, s2, s3]
        return result

    def unit(self) -> float:
        """Uniform on [0, 1), a multiple of 2^-53."""
        return (self.bits() >> 11) * 2.0**-53

    def fork(self) -> Stream:
        """A copy, which goes on from here by itself."""
        return copy.deepcopy(self)

    def below(self, n: int) -> int:
        """Uniform on 0..n-1."""
        return (self.bits() * n) >> 64


def flow_hash(flow: int, salt: int) -> int:
    """Sixty-four bits of a flow under a salt (``base::FlowKey::hash``)."""
    return mixed(flow ^ mixed(salt ^ 0x9E3779B97F4A7C15))


def place(bits: int, places: int) -> int:
    """One of so many places, by the upper of sixty-four bits."""
    return (bits * places) >> 64


def mixed(z: int) -> int:
    """The finalizer of splitmix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    return z ^ (z >> 31)


def _rotated(x: int, k: int) -> int:
    return ((x << k) | (x >> (64 - k))) & _WORD
