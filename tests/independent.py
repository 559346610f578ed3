"""References written without broca's code: plain transformers, weights zeroed by hand."""

from __future__ import annotations

import copy

import torch


def zeroed_by_hand(model, heads, *, head_dim):
    """A deep copy of a Llama model with the o_proj columns of some (layer, head) zeroed."""
    edited = copy.deepcopy(model)
    with torch.no_grad():
        for layer, head in heads:
            weight = edited.model.layers[layer].self_attn.o_proj.weight
            weight[:, head * head_dim : (head + 1) * head_dim] = 0
    return edited


@torch.no_grad()
def plain_loglikelihood(model, context, continuation):
    """Sum of the log-probabilities of a continuation: one sequence, no padding, no cache."""
    tokens = torch.tensor([[*context, *continuation]])
    logits = model(input_ids=tokens, use_cache=False).logits[0].double()
    predicted = torch.log_softmax(logits[len(context) - 1 : -1], dim=-1)
    wanted = torch.tensor(continuation)
    total = predicted.gather(-1, wanted[:, None]).sum()
    return float(total), bool((predicted.argmax(-1) == wanted).all())


@torch.no_grad()
def plain_generation(model, context, *, new_tokens, min_new=False):
    """New tokens of transformers' own greedy `generate`, one sequence alone.

    With `min_new` the end of sequence is ignored.
    """
    output = model.generate(
        torch.tensor([context]),
        attention_mask=torch.ones(1, len(context), dtype=torch.long),
        max_new_tokens=new_tokens,
        do_sample=False,
        eos_token_id=None if min_new else model.generation_config.eos_token_id,
        pad_token_id=model.config.pad_token_id,
    )
    return output[0, len(context) :].tolist()
