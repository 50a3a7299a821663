"""Agents that learn: a link as an environment of Gymnasium, and policies that are disciplines.

>>> import gymnasium, aqmlab.gym
>>> env = gymnasium.make("aqmlab/Link-v0", scenario="web-pi.toml", step="10ms")
>>> policy = aqmlab.gym.Policy.of(model, env)      # of stable-baselines3, or layers
>>> policy.save("policy.onnx")                     # aqmlab compare web-pi.toml policy.onnx pi2 codel
"""

try:
    import gymnasium
except ImportError:
    raise ImportError('gymnasium is not installed; expected pip install "aqmlab[gym]"') from None

from aqmlab.gym.link import DEFAULT_REWARD, Link
from aqmlab.gym.measures import MEASURES
from aqmlab.gym.saved import Layer, Policy, save_policy
from aqmlab.gym.vector import ThreadedVector

ID = "aqmlab/Link-v0"

if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="aqmlab.gym:Link", vector_entry_point="aqmlab.gym:ThreadedVector")

__all__ = ["DEFAULT_REWARD", "ID", "MEASURES", "Layer", "Link", "Policy", "ThreadedVector", "save_policy"]
