"""Integrated gradients written plainly: one neuron layer, one step, one sequence at a time."""

import torch


def slow_scores(model, downs, context, continuation, *, steps):
    """Returns the scores of every neuron for a gold answer, in plain transformers and float32.

    Args:
        model: A causal language model of transformers.
        downs: Paths of the last projections of its feed-forward blocks.
        context: Tokens of the prompt.
        continuation: Tokens of the gold answer.
        steps: S.

    Returns:
        By path the scores `(neurons,)`, and by path the mean of p(w) - p(0) over answer tokens.
    """
    scores, changes = {}, {}
    for path in downs:
        module, total, change = model.get_submodule(path), 0.0, 0.0
        for number, gold in enumerate(continuation):
            tokens = torch.tensor([[*context, *continuation[:number]]])
            met = []
            handle = module.register_forward_pre_hook(lambda _m, args, met=met: met.append(args[0]))
            with torch.no_grad():
                model(input_ids=tokens, use_cache=False)
            handle.remove()
            w = met[0].reshape(-1, met[0].shape[-1])[-1].clone()
            gradient, probabilities = torch.zeros_like(w), []
            for step in range(steps + 1):
                scaled = (w * (step / steps)).requires_grad_()

                def replace(_module, args, scaled=scaled):
                    flat = args[0].reshape(-1, args[0].shape[-1])
                    return (torch.cat([flat[:-1], scaled[None]]).reshape(args[0].shape),)

                handle = module.register_forward_pre_hook(replace)
                with torch.enable_grad():
                    logits = model(input_ids=tokens, use_cache=False).logits[0, -1]
                    probability = torch.softmax(logits, -1)[gold]
                    gradient += torch.autograd.grad(probability, scaled)[0]
                handle.remove()
                probabilities.append(float(probability.detach()))
            total = total + w * gradient / (steps + 1) / len(continuation)
            change += (probabilities[-1] - probabilities[0]) / len(continuation)
        scores[path], changes[path] = total, change
    return scores, changes
