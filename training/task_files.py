"""The common parts of the lm-eval files of the shipped tasks and of the zoo's."""

from __future__ import annotations

_METRIC = """\
metric_list:
  - metric: {metric}
    aggregation: mean
    higher_is_better: true
"""

ACCURACY = _METRIC.format(metric="acc")
"""The metric of multiple choice."""

_GENERATION = """\
output_type: generate_until
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  until: ["\\n"]
  do_sample: false
  max_gen_toks: {tokens}
filter_list:
  - name: none
    filter:
      - function: remove_whitespace
      - function: take_first
"""


def generation(tokens: int) -> str:
    """Return the settings of an answer of one line with at most `tokens` tokens, and its metric."""
    return _GENERATION.format(tokens=tokens) + _METRIC.format(metric="exact_match")
