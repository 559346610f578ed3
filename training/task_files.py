"""What the lm-eval files of the shipped tasks and of the zoo's have in common."""

from __future__ import annotations

_METRIC = """\
metric_list:
  - metric: {metric}
    aggregation: mean
    higher_is_better: true
"""

ACCURACY = _METRIC.format(metric="acc")
"""How multiple choice is scored."""

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
    """Return how an answer of one line, of at most some tokens, is generated and scored."""
    return _GENERATION.format(tokens=tokens) + _METRIC.format(metric="exact_match")
