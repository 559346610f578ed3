"""Hugging Face models, their components and gates; the only package that touches torch modules."""

from broca.models.checkpoints import adapter_in as adapter_in
from broca.models.checkpoints import require_peft as require_peft
from broca.models.checkpoints import shipped_model_folder as shipped_model_folder
from broca.models.gated import GatedModel as GatedModel
from broca.models.gates import ActiveGates as ActiveGates
from broca.models.gates import GatePoint as GatePoint
from broca.models.gates import captured as captured
from broca.models.gates import kinds_of as kinds_of
from broca.models.gguf_files import holds_model as holds_model
from broca.models.loading import load as load
from broca.models.loading import load_tokenizer as load_tokenizer
from broca.models.loading import require_readable as require_readable
from broca.models.neurons import NeuronBlock as NeuronBlock
from broca.models.neurons import last_token_replaced as last_token_replaced
from broca.models.neurons import neuron_blocks as neuron_blocks
from broca.models.neurons import parameters_of_neuron as parameters_of_neuron
from broca.models.selftest import self_test as self_test
from broca.models.selftest import sharing_checks as sharing_checks
from broca.models.usage import greedy as greedy
