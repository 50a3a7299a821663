"""Trains a small agent to signal congestion, and saves what it has learnt as a discipline.

    pip install stable-baselines3
    python examples/agent/train.py policy.onnx

The agent is PPO of stable-baselines3: two layers of 32, on one core. It learns on ten links, each with drop-tail's
buffer, and never sees those of evaluate.py.
"""

import argparse
import math
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

import aqmlab.gym

LINK = """
[link]
rate = "{rate}"
qdisc = {{ kind = "pfifo", limit = "{limit}" }}
[path]
rtt = {{ uniform = ["{low}", "{high}"] }}
[[traffic]]
kind = "bulk"
flows = {flows}
[[traffic]]
kind = "poisson"
arrivals = "{arrivals}"
size = "20kb"
"""

TRAINING = [
    LINK.format(rate=rate, limit=limit, low=low, high=high, flows=flows, arrivals=arrivals)
    for rate, limit, low, high, flows, arrivals in (
        ("5mbit", "200p", "20ms", "60ms", 2, "2hz"),
        ("5mbit", "200p", "40ms", "120ms", 12, "4hz"),
        ("5mbit", "200p", "150ms", "250ms", 6, "2hz"),
        ("10mbit", "400p", "10ms", "40ms", 5, "4hz"),
        ("10mbit", "400p", "40ms", "120ms", 25, "8hz"),
        ("10mbit", "400p", "20ms", "80ms", 60, "4hz"),
        ("25mbit", "800p", "50ms", "70ms", 1, "2hz"),
        ("25mbit", "800p", "20ms", "60ms", 3, "10hz"),
        ("25mbit", "800p", "100ms", "200ms", 8, "10hz"),
        ("25mbit", "800p", "30ms", "100ms", 40, "10hz"),
    )
]


def reward(measures: Mapping[str, float]) -> float:
    """A full link without a wait is worth 1. A wait of 10 ms takes 0.2 of that away, one of 70 ms 0.6."""
    waits = 0.2 * math.log2(1.0 + measures["wait_ms"] / 10.0)
    return min(measures["utilisation"], 1.0) - waits - 0.3 * measures["losses"]


LEARNS = {
    "step": "20ms",
    "duration": "15s",
    "windows": 4,
    "action": {"probability": (0.0, 0.25, "square")},
    "reward": reward,
}
"""What the agent sees, does and is rewarded for."""


def mean_reward(env: aqmlab.gym.Link, act, seeds: range) -> float:
    """The mean reward of a step, over an episode a training link and seed."""
    rewards = []
    for seed in seeds:
        for scenario in range(len(TRAINING)):
            observation, _ = env.reset(seed=seed, options={"scenario": scenario})
            is_over = False
            while not is_over:
                observation, reward, _, is_over, _ = env.step(act(observation))
                rewards.append(reward)
    return float(np.mean(rewards))


def main() -> None:
    """Trains, saves, and says how the policy does on its training links beside drop-tail."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", type=Path, help="the file to write, such as policy.onnx")
    parser.add_argument("--steps", type=int, default=450_000, help="steps to learn from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gamma", type=float, default=0.99)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    links = DummyVecEnv([lambda: aqmlab.gym.Link(TRAINING, **LEARNS)] * 8)
    agent = PPO(
        "MlpPolicy",
        links,
        n_steps=500,
        batch_size=500,
        learning_rate=1e-3,
        gamma=chosen.gamma,
        policy_kwargs={"net_arch": [32, 32], "log_std_init": -1.3},
        seed=chosen.seed,
        device="cpu",
    )
    # It begins with hardly any signals: a flow that is never left alone does not show what the link could carry.
    agent.policy.action_net.bias.data.fill_(-1.0)
    began = time.monotonic()
    agent.learn(chosen.steps)
    print(f"{chosen.steps} steps in {time.monotonic() - began:.0f} s")
    env = aqmlab.gym.Link(TRAINING, **LEARNS)
    learnt = aqmlab.gym.save_policy(chosen.policy, agent, env, name="learnt", doc="What PPO has learnt on ten links.")
    seeds = range(1000, 1003)
    drop_tail = mean_reward(env, lambda _: np.array([-1.0], np.float32), seeds)
    print(f"mean reward of a step: {mean_reward(env, learnt.act, seeds):.3f}, of drop-tail {drop_tail:.3f}")


if __name__ == "__main__":
    main()
