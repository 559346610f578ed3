"""Runs rows on a model: batches of mixed masks and items, decoding, memory, shared work."""

from broca.engine.ablation import Ablation as Ablation
from broca.engine.ablation import OutputNorms as OutputNorms
from broca.engine.ablation import donor_activations as donor_activations
from broca.engine.engine import Answers as Answers
from broca.engine.engine import Engine as Engine
from broca.engine.engine import Job as Job
from broca.engine.engine import Progress as Progress
from broca.engine.engine import RunnerSpec as RunnerSpec
from broca.options import EngineOptions as EngineOptions
