"""Feed-forward neurons: which of them carry what a data set has in common."""

from broca.neurons.corpora import load_texts
from broca.neurons.crossing import Crossed, Parts, cross
from broca.neurons.decoupling import Decoupled, Pair, decouple
from broca.neurons.effects import INTACT, Measurer, Scaled
from broca.neurons.enhancing import Arm, enhance
from broca.neurons.erasing import Erased, erase
from broca.neurons.fidelity import Fidelity, fidelity
from broca.neurons.figures import overlap_page
from broca.neurons.gradients import Attribution, Attributor, steps_of
from broca.neurons.locating import ItemScores, NeuronModel, item_scores
from broca.neurons.methods import Choice, choose, require_method
from broca.neurons.overlapping import Overlaps, overlaps
from broca.neurons.paraphrases import paraphrased, shipped_pairs
from broca.neurons.questions import Question, QuestionSet, Text, from_benchmark, from_texts
from broca.neurons.reliability import Reliability, reliability
from broca.neurons.results import located, neuron_model_info
from broca.neurons.selection import Rule, commonality_set, item_set
from broca.neurons.sensing import Sensed, SensingOptions, sense
from broca.neurons.session import Session, Settings
from broca.neurons.sets import Overlap, overlap, random_set
from broca.neurons.tuning import Tuned, TuningOptions, tuned, zeroed

__all__ = [
    "INTACT",
    "Arm",
    "Attribution",
    "Attributor",
    "Choice",
    "Crossed",
    "Decoupled",
    "Erased",
    "Fidelity",
    "ItemScores",
    "Measurer",
    "NeuronModel",
    "Overlap",
    "Overlaps",
    "Pair",
    "Parts",
    "Question",
    "QuestionSet",
    "Reliability",
    "Rule",
    "Scaled",
    "Sensed",
    "SensingOptions",
    "Session",
    "Settings",
    "Text",
    "Tuned",
    "TuningOptions",
    "choose",
    "commonality_set",
    "cross",
    "decouple",
    "enhance",
    "erase",
    "fidelity",
    "from_benchmark",
    "from_texts",
    "item_scores",
    "item_set",
    "load_texts",
    "located",
    "neuron_model_info",
    "overlap",
    "overlap_page",
    "overlaps",
    "paraphrased",
    "random_set",
    "reliability",
    "require_method",
    "sense",
    "shipped_pairs",
    "steps_of",
    "tuned",
    "zeroed",
]
