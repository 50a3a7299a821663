"""What is asked: a link, who uses it, what can be done about it, and what matters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aqmlab import files, toml_text, units
from aqmlab.advice import captured, configured
from aqmlab.advice.access import ACCESS, Access
from aqmlab.advice.candidates import PLATFORMS, PORTS
from aqmlab.advice.captured import Captured
from aqmlab.advice.configured import Configured
from aqmlab.errors import BadInput
from aqmlab.json_files import is_number

APPLICATIONS = ("calls", "web", "video", "games", "downloads")

Range = tuple[float, float]
"""The least and the most of what is not known; each run draws its own."""

RTT_S: Range = (0.010, 0.080)
"""Where nobody says: servers near and far, as from a home in a city."""

PAGE_EVERY_S = 15.0
"""From one page to the next of somebody who browses, in the mean."""

PAGE_MEDIAN_BYTES = 1024 * 1024
PAGE_SIGMA = 1.0
"""Bytes of a page, lognormal: the mean is 1.65 times the median."""

USER_BPS = PAGE_MEDIAN_BYTES * math.exp(PAGE_SIGMA**2 / 2) * 8 / PAGE_EVERY_S
"""What one who browses asks for, in the mean."""

MOST_OF_PAGES = 0.8
"""Share of the rate that pages alone may ask for: beyond, they have no end under any discipline."""

SLOWEST_BPS = 256e3
"""Below, a call alone is a third of the link."""

FASTEST_BPS = 10e9
"""Beyond, hardly a shaper of these platforms keeps up, and one run takes minutes."""

MOST_SEED = 10**12
"""Each round has a seed of its own, a hundred thousand to one of these."""

MOST_USERS = 100_000
"""People of a mix; how many the link has room for is asked after that."""

SLOWEST_PORT_BPS = 25e6
"""Below, a queue of four full frames is longer than the shortest that is tried."""

DURATION_S = 24.0
"""A run of the race, warm-up included; a piece of a capture is as long."""

SHARES = {"users": 0.3, "video": 0.4, "calls": 0.1, "games": 0.1, "downloads": 0.05, "uploads": 0.05}
"""How many of all homes do what at a time, in the busy hour: the shares of `kind = "homes"`, with their sources."""

OF_SHARES = (0.5, 1.5)
"""Between so much and so much of these shares each run draws its own."""

READER_BPS = 3.2e6 * 8 / PAGE_EVERY_S
"""What one who reads pages of today asks for, whose pages have 3.2 MB in the mean, if they take no time."""

VIEWER_BPS = 235e3
"""The least that a film takes."""


def most_users(down_bps: float, user_bps: float = USER_BPS) -> int:
    """How many may browse at a time; one may always, who then waits for each page before the next."""
    return max(1, int(MOST_OF_PAGES * down_bps / user_bps))


@dataclass(frozen=True)
class Mix:
    """Who does what at the same time; every number a range."""

    users: Range = (1, 4)
    """People who browse."""
    downloads: Range = (1, 4)
    uploads: Range = (1, 2)
    calls: Range = (1, 1)
    games: Range = (1, 1)
    bbr: Range = (0.0, 0.5)
    """Share of downloads and uploads that BBR controls; CUBIC controls the others."""
    video: Range = (0, 0)
    """Films that are watched."""

    def most(self, who: str) -> float:
        """The most that there are of a kind."""
        ends: Range = getattr(self, who)
        return ends[1]

    def has(self, application: str) -> bool:
        """Whether anybody may do what a weight is for."""
        return any(self.most(who) for who in WHO[application])


WHO: Mapping[str, Sequence[str]] = {
    "calls": ("calls",),
    "web": ("users",),
    "video": ("video",),
    "games": ("games",),
    "downloads": ("downloads", "uploads"),
}
"""Keys of a mix whose people an application is of."""


OF_CAPTURE = Mix(users=(0, 0), downloads=(0, 0), uploads=(0, 0), bbr=(0, 0))
"""Beside the traffic of a capture a call and a game look on."""


@dataclass(frozen=True)
class Question:
    """A link, and what is to be known of it."""

    down_bps: float
    up_bps: float
    rtt_s: Range = RTT_S
    mix: Mix = field(default_factory=Mix)
    access: Access = ACCESS["ethernet"]
    platform: str = "linux"
    homes: int | None = None
    """Homes behind the link, whose people read pages of today; without, pages are one answer each."""
    weights: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(APPLICATIONS, 1.0))
    seed: int = 1
    captured: Captured | None = None
    """Traffic of the link's own, in place of people who browse, download and upload."""
    configured: Configured | None = None
    """What is set on the router now."""
    own_rtt: bool = False
    """Whether its connections have the round trips that were seen of them."""

    @property
    def shaper_overhead_bytes(self) -> int:
        """What the platform's shaper counts to a packet beyond its IP size: dummynet and RouterOS's trees count
        nothing."""
        return 0 if self.platform in ("freebsd", "mikrotik") else self.access.overhead_bytes

    def __post_init__(self) -> None:
        _fits(self.down_bps, self.mix, is_homes=self.homes is not None)


def read(
    down: str,
    up: str,
    rtt: str | None = None,
    homes: int | None = None,
    users: int | None = None,
    mix: Path | None = None,
    access: str = "ethernet",
    platform: str = "linux",
    what_for: str | None = None,
    seed: int = 1,
    capture: Path | None = None,
    begun_in: str | None = None,
    have: Path | None = None,
) -> Question:
    """The question that words ask; `BadInput` with one line that says what to do."""
    if sum(one is not None for one in (homes, users, mix, capture)) > 1:
        raise BadInput("--homes, --users, --mix, --capture: expected one of them")
    if begun_in is not None and capture is None:
        raise BadInput(f"--from {begun_in}: expected with --capture, of which it says where the users are")
    if access not in ACCESS:
        raise BadInput(f"--access {access}: expected one of {', '.join(ACCESS)}")
    able = PORTS if ACCESS[access].is_port else PLATFORMS
    if platform not in able:
        of_line = f" with --access {access}" if platform in (*PORTS, *PLATFORMS) else ""
        raise BadInput(f"--on {platform}{of_line}: expected one of {', '.join(able)}")
    if not 0 <= seed <= MOST_SEED:
        raise BadInput(f"--seed {seed}: expected a number from 0 to {MOST_SEED}")
    rates = _rates(down, up, SLOWEST_PORT_BPS if ACCESS[access].is_port else SLOWEST_BPS)
    fits = most_users(rates[0])
    weights = _weights(what_for)
    round_trips = None if rtt is None else _rtt(rtt)
    seen = None
    if capture is not None:
        crowd, who = OF_CAPTURE, ""
        seen = captured.read(capture, begun_in, DURATION_S)
    elif mix is not None:
        crowd, who = _mix_of(mix, _usual(access, fits)), f"{mix}: "
    elif homes is not None:
        crowd, who = _of_homes(_at_least_one(homes, "--homes")), f"--homes {homes}: in the busy hour up to "
    else:
        crowd = _usual(access, fits)
        if users is not None:
            number = _at_least_one(users, "--users")
            is_port = ACCESS[access].is_port
            crowd = replace(crowd, users=(number, number)) if is_port else _of_users(number)
        who = f"--users {users}: "
    crowd = _with_films(crowd, weights["video"] > 0 and what_for is not None, capture is not None, mix)
    if mix is not None and what_for is not None:
        _refuse_what_nobody_does(crowd, weights, mix)
    _fits(rates[0], crowd, who, homes is not None)
    return Question(
        *rates,
        rtt_s=round_trips or (RTT_S if seen is None else seen.rtt_s),
        mix=crowd,
        access=ACCESS[access],
        platform=platform,
        homes=homes,
        weights=weights,
        seed=seed,
        captured=seen,
        configured=None if have is None else configured.read(have, *rates, is_port=ACCESS[access].is_port),
        own_rtt=seen is not None and round_trips is None,
    )


def _usual(access: str, fits: int) -> Mix:
    """Who is there where nobody says. Behind a port are many, at any time."""
    if ACCESS[access].is_port:
        return Mix(users=(max(1, fits // 2), fits), downloads=(4, 16), uploads=(2, 8))
    return Mix(users=(1, min(4, fits)))


def _rates(down: str, up: str, slowest_bps: float) -> tuple[float, float]:
    found = []
    for option, text in (("--down", down), ("--up", up)):
        bps = units.rate_bps(text, option)
        if not slowest_bps <= bps <= FASTEST_BPS:
            ends = f"{units.rate_text(slowest_bps)} to {units.rate_text(FASTEST_BPS)}"
            raise BadInput(f"{option} {text}: expected {ends}: what was bought or, better, what was measured")
        found.append(bps)
    if found[1] > found[0]:
        raise BadInput(
            f"--up {up}: exceeds --down {down}; expected the rate towards the users as --down, and as --up no more: "
            f"--down {up} --up {down}?"
        )
    return found[0], found[1]


def _with_films(mix: Mix, is_asked: bool, is_captured: bool, file: Path | None) -> Mix:
    """A mix in which somebody watches a film if that is to matter."""
    if not is_asked or mix.video[1] > 0:
        return mix
    if is_captured:
        raise BadInput("--for video: a capture says nothing of films; expected --homes, --users or --mix with it")
    if file is not None:
        raise BadInput(f"--for video: nobody watches in {file}; expected a line as video = [1, 2] there")
    return replace(mix, video=(1, 2))


def _refuse_what_nobody_does(mix: Mix, weights: Mapping[str, float], file: Path) -> None:
    """What is to matter is done by somebody."""
    for name, weight in weights.items():
        if weight and not mix.has(name):
            who = " or ".join(WHO[name])
            raise BadInput(f"--for {name}: nobody does so in {file}; expected more than 0 as its {who}")


def _fits(down_bps: float, mix: Mix, who: str = "", is_homes: bool = False) -> None:
    """Refuses more people than the link has pages for; `who` says where they were asked for."""
    user_bps = READER_BPS if is_homes else USER_BPS
    fits, asked = most_users(down_bps, user_bps), mix.users[1] * user_bps
    films_bps = mix.video[1] * VIEWER_BPS
    if films_bps > MOST_OF_PAGES * down_bps:
        raise BadInput(
            f"{who}{mix.video[1]:g} films ask for {units.say_rate(films_bps)} at least, of {units.say_rate(down_bps)}: "
            f"no discipline makes room; expected at most {int(MOST_OF_PAGES * down_bps / VIEWER_BPS)} at a time"
        )
    if mix.users[1] > fits:
        raise BadInput(
            f"{who}{mix.users[1]:g} people who browse ask for {units.say_rate(asked)} of pages in the mean, of "
            f"{units.say_rate(down_bps)}: no discipline makes room; expected at most {fits} at a time"
        )


def _at_least_one(number: int, option: str) -> int:
    if number < 1:
        raise BadInput(f"{option} {number}: expected 1 at least")
    return number


def _rtt(text: str) -> Range:
    low, separator, high = text.partition("..")
    if separator and not (low.strip() and high.strip()):
        raise BadInput(f"--rtt {text}: expected both ends, as 20ms..60ms, or one time")
    found = units.seconds(low.strip(), "--rtt"), units.seconds((high if separator else low).strip(), "--rtt")
    if not 0 < found[0] <= found[1] <= 2:
        raise BadInput(f"--rtt {text}: expected the shortest and the longest, as 20ms..60ms, above 0 and up to 2s")
    return found


def _of_homes(homes: int) -> Mix:
    """The busy hour of so many homes, in which everything is done by one at least."""
    low, high = OF_SHARES

    def among(share: float) -> Range:
        return max(1, round(homes * share * low)), max(1, round(homes * share * high))

    return Mix(**{name: among(share) for name, share in SHARES.items()})


def _of_users(users: int) -> Mix:
    return Mix(
        users=(users, users),
        downloads=(1, 2 + users // 2),
        uploads=(1, 1 + users // 4),
        calls=(1, 1 + users // 6),
        games=(1, 1 + users // 10),
    )


def _mix_of(path: Path, mix: Mix) -> Mix:
    """A TOML file with a number or a range `[low, high]` for any part of a mix; the others are those of `mix`."""
    tree = toml_text.read(path, files.MIX)
    if not tree:
        keys = ", ".join(Mix.__dataclass_fields__)
        raise BadInput(f"{path}: says nothing of who does what; expected a line for one at least of {keys}")
    for key, value in tree.items():
        if key not in Mix.__dataclass_fields__:
            raise BadInput(f"{path}: {key}: unknown key; expected {', '.join(Mix.__dataclass_fields__)}")
        ends = value if isinstance(value, list) else [value, value]
        most = {"bbr": 1, "users": MOST_USERS}.get(key, 1000)
        numbers = [end for end in ends if is_number(end)]
        whole = key == "bbr" or all(float(number).is_integer() for number in numbers)
        if len(ends) != 2 or len(numbers) != 2 or not whole or not 0 <= numbers[0] <= numbers[1] <= most:
            kind = "a share" if key == "bbr" else "a whole number"
            raise BadInput(f"{path}: {key} = {value!r}: expected {kind} from 0 to {most}, or two as [least, most]")
        mix = replace(mix, **{key: (float(numbers[0]), float(numbers[1]))})
    who = [key for keys in WHO.values() for key in keys]
    if not any(getattr(mix, key)[0] for key in who):
        raise BadInput(
            f"{path}: there may be nobody who does anything; expected 1 at least for one of {', '.join(who)}"
        )
    return mix


def _weights(text: str | None) -> dict[str, float]:
    """`calls,web=2`: what is not named has no weight."""
    if text is None:
        return dict.fromkeys(APPLICATIONS, 1.0)
    weights = dict.fromkeys(APPLICATIONS, 0.0)
    there = set()
    for part in text.split(","):
        name, equals, number = part.strip().partition("=")
        try:
            weight = float(number) if equals else 1.0
        except ValueError:
            weight = -1.0
        if name not in weights:
            raise BadInput(
                f"--for {text}: {part.strip()!r}: expected {', '.join(APPLICATIONS)}, each with a weight as web=2"
            )
        if not 0 < weight <= 1000:
            raise BadInput(
                f"--for {text}: {part.strip()!r}: expected a weight above 0 and up to 1000; what is not named has none"
            )
        if name in there:
            raise BadInput(f"--for {text}: {part.strip()!r}: {name} is there twice; expected each once")
        there.add(name)
        weights[name] = weight
    return weights
