"""References written without broca's code: plain transformers, weights zeroed by hand."""

import copy

import torch


def zeroed_by_hand(model, heads, *, scale=0.0):
    """Returns a copy of a Llama model with the o_proj columns of (layer, head) pairs scaled."""
    edited, head_dim = copy.deepcopy(model), model.config.head_dim
    with torch.no_grad():
        for layer, head in heads:
            weight = edited.model.layers[layer].self_attn.o_proj.weight
            weight[:, head * head_dim : (head + 1) * head_dim] *= scale
    return edited


def sliced(module, start, stop, value=0, *, tokens=slice(None)):
    """Replaces a slice of a module's input, at some tokens, until its hook is removed.

    The hook, which is returned, may be used as a context.
    """

    def replace(_module, args):
        changed = args[0].clone()
        changed[..., tokens, start:stop] = value
        return (changed,)

    return module.register_forward_pre_hook(replace)


@torch.no_grad()
def plain_loglikelihood(model, context, continuation, *, paired=False):
    """Returns the log-likelihood of a continuation and whether every token is the most likely.

    The sequence is run alone, without padding or cache, and without its last token, which is only
    predicted. If `paired`, each token and the most likely other one are the whole vocabulary.
    """
    tokens = torch.tensor([[*context, *continuation][:-1]])
    logits = model(input_ids=tokens, use_cache=False).logits[0].double()
    predicted = torch.log_softmax(logits[len(context) - 1 :], dim=-1)
    targets = torch.tensor(continuation)
    if paired:
        here = torch.arange(logits.shape[-1]) == targets[:, None]
        likely = predicted.exp()
        own, other = likely[here], likely.masked_fill(here, 0).amax(-1)
        return float((own / (own + other)).log().sum()), bool((own >= other).all())
    total = predicted.gather(-1, targets[:, None]).sum()
    return float(total), bool((predicted.argmax(-1) == targets).all())


@torch.no_grad()
def plain_generation(model, context, *, new_tokens, min_new=False, **settings):
    """Returns the new tokens of transformers' greedy `generate` on a single sequence.

    With `min_new`, the end-of-sequence token does not stop the generation; other settings are
    those of `generate`.
    """
    tokens = torch.tensor([context])
    end = None if min_new else model.generation_config.eos_token_id
    output = model.generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=new_tokens,
        do_sample=False, eos_token_id=end, pad_token_id=model.config.pad_token_id, **settings,
    )  # fmt: skip
    return output[0, len(context) :].tolist()
