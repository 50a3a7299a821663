"""Trains a small agent to signal congestion, and saves what it has learnt as a discipline.

    pip install "aqmlab[gym]" stable-baselines3
    python examples/agent/train.py --steps 200000 policy.onnx

The agent is PPO of stable-baselines3: two layers of 32, on one core. It learns on six links, each with drop-tail's
buffer, and never sees those of evaluate.py.
"""

import argparse
import time
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
        ("10mbit", "400p", "10ms", "40ms", 5, "4hz"),
        ("10mbit", "400p", "40ms", "120ms", 25, "8hz"),
        ("25mbit", "800p", "20ms", "60ms", 3, "10hz"),
        ("25mbit", "800p", "30ms", "100ms", 40, "10hz"),
    )
]

LEARNS = {
    "step": "20ms",
    "duration": "15s",
    "windows": 4,
    "action": {"probability": (0.0, 0.25, "square")},
    "reward": {"utilisation": 1.0, "wait_ms": -0.02, "losses": -1.0},
}
"""What the agent sees, does and is rewarded for: 50 ms of wait are worth a full link."""


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
    parser.add_argument("--steps", type=int, default=200_000, help="steps to learn from")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    links = DummyVecEnv([lambda: aqmlab.gym.Link(TRAINING, **LEARNS)] * 8)
    agent = PPO(
        "MlpPolicy",
        links,
        n_steps=500,
        batch_size=500,
        learning_rate=1e-3,
        gamma=0.97,
        policy_kwargs={"net_arch": [32, 32], "log_std_init": -1.0},
        seed=chosen.seed,
        device="cpu",
    )
    began = time.monotonic()
    agent.learn(chosen.steps)
    print(f"{chosen.steps} steps in {time.monotonic() - began:.0f} s")
    env = aqmlab.gym.Link(TRAINING, **LEARNS)
    learnt = aqmlab.gym.save_policy(chosen.policy, agent, env, name="learnt", doc="What PPO has learnt on six links.")
    seeds = range(1000, 1003)
    drop_tail = mean_reward(env, lambda _: np.array([-1.0], np.float32), seeds)
    print(f"mean reward of a step: {mean_reward(env, learnt.act, seeds):.3f}, of drop-tail {drop_tail:.3f}")


if __name__ == "__main__":
    main()
