"""The model card of an export: description, loading, evidence and recipe."""

from __future__ import annotations

from pathlib import Path

from broca.models import SHIPPED_MODELS
from broca.results.export import Export, Form, HeldOut

PICTURE = "components.png"

_LIBRARY: dict[Form, str] = {
    "adapter": "peft", "weights": "transformers", "patch": "transformers", "heads": "broca",
}  # fmt: skip

_KIND: dict[Form, str] = {
    "adapter": "An (IA)^3 adapter for PEFT,",
    "weights": "A checkpoint for transformers,",
    "patch": "The changed tensors of a model,",
    "heads": "A list of components for other libraries,",
}

_USE: dict[Form, str] = {
    "adapter": """from peft import PeftModel
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained({base})
model = PeftModel.from_pretrained(model, "PATH")  # the folder or repository of this card
with model.disable_adapter():
    ...  # the base model
model = model.merge_and_unload()  # for good""",
    "weights": """from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("PATH")  # the folder or repository of this card
tokenizer = AutoTokenizer.from_pretrained("PATH")""",
    "patch": """import broca

broca.apply("PATH", {name!r}, "patched")  # the folder of this card; writes a whole model

# or with transformers alone
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained({base}, dtype="{dtype}")
model.load_state_dict(load_file("PATH/patch.safetensors"), strict=False)""",
    "heads": """import json

content = json.load(open("heads.json"))
print(content["heads"])  # (layer, head) pairs
print(content["snippets"]["hooks"])  # or transformer_lens, nnsight, pyvene, mib""",
}


_SHIPPED = "from broca.models import shipped_model_folder  # the base is part of broca\n"


def card(export: Export) -> str:
    """Writes the model card as Markdown, with the metadata that the hub reads."""
    names = ", ".join(export.components)
    scale = export.ablation.scale
    how = f"{export.ablation.kind} ablation" if scale == 0 else f"their outputs times {scale:g}"
    base = _name(export.base.id or export.model.name)
    title = f"{base} without {_first(export.components)}"
    if scale != 0:
        title = f"{base} with {_first(export.components)} at {scale:g}"
    shipped = base in SHIPPED_MODELS
    use = _USE[export.form].format(
        base=f"shipped_model_folder({base!r})" if shipped else repr(base),
        name=base,
        dtype=export.base.dtype,
    )
    if "shipped_model_folder" in use:
        use = _SHIPPED + use
    lines = [
        *_metadata(export),
        f"# {title}",
        "",
        f"{_KIND[export.form]} made with broca. In it, "
        f"components of `{base}` are ablated ({how}): {names}.",
        "",
        f"![Layers from the top, heads from the left, MLP blocks apart]({PICTURE})",
        "",
        "Dark frames mark ablated components; orange heads are those without which the "
        "task gets worse.",
        "",
        "## Use",
        "",
        "```python",
        use,
        "```",
        "",
        *(() if export.held_out is None else _held_out(export.held_out)),
        "## Recipe",
        "",
        *_recipe(export),
        "",
        *_checks(export),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _name(base: str) -> str:
    """Returns the name of a base in a card; for a folder, only its last part."""
    return Path(base).name if Path(base).expanduser().is_dir() else base


def _first(components: tuple[str, ...], most: int = 5) -> str:
    more = f" and {len(components) - most} more" if len(components) > most else ""
    return ", ".join(components[:most]) + more


def _metadata(export: Export) -> list[str]:
    """Returns the metadata for the hub, which name the base only if it is on the hub."""
    base = export.base.id
    on_hub = base is not None and base not in SHIPPED_MODELS and export.base.revision is not None
    relation = {"adapter": "adapter", "weights": "finetune", "patch": "finetune"}.get(export.form)
    lines = ["---", f"library_name: {_LIBRARY[export.form]}"]
    if on_hub:
        lines.append(f"base_model: {base}")
        if relation is not None:
            lines.append(f"base_model_relation: {relation}")
    if export.form in ("adapter", "weights"):
        lines.append("pipeline_tag: text-generation")
    return [*lines, "tags:", "- broca", "- interpretability", "- ablation", "---", ""]


def _held_out(held_out: HeldOut) -> list[str]:
    """Returns the verdict and the table of drops."""
    lines = [f"## On held-out items of {held_out.task}", ""]
    if held_out.verdict is not None:
        lines += [f"**{held_out.verdict.label}**: {held_out.verdict.text}", ""]
    lines += [
        "| task | items | intact | ablated | lost | 95 % interval |",
        "|---|---|---|---|---|---|",
    ]
    for line in held_out.drops:
        ends = "" if line.ci is None else f"{100 * line.ci[0]:.1f} to {100 * line.ci[1]:.1f}"
        lines.append(
            f"| {line.task} | {line.items} | {held_out.before[line.task]:.3f} | "
            f"{held_out.after[line.task]:.3f} | {100 * line.drop:.1f} points | {ends} |"
        )
    return [*lines, ""]


def _recipe(export: Export) -> list[str]:
    """Returns the table of everything that is needed to repeat the export."""
    base = export.base.id or ""
    command = export.command.replace(repr(base), repr(_name(base)))
    rows = {
        "base model": f"`{_name(export.base.id)}`"
        if export.base.id
        else f"{export.model.name}, in memory",
        "revision": f"`{export.base.revision}`" if export.base.revision else "",
        "fingerprint of its weights": f"`{export.model.fingerprint}` ({export.base.dtype})",
        "architecture": export.model.architecture,
        "components": f"`{'+'.join(export.components)}`",
        "ablation": f"{export.ablation.kind}, factor {export.ablation.scale:g}",
        "made by": f"`{command}`",
        "broca": export.broca,
    }
    return ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows.items() if text)]


def _checks(export: Export) -> list[str]:
    """Describes the checks of the export."""
    lines = []
    if (check := export.reloaded) is not None:
        by = " and ".join(f"{name} {version}" for name, version in check.libraries.items())
        lines.append(
            f"- Loaded again by {by} alone it reads {check.prompts} prompts and continues them by "
            f"{check.tokens} tokens as the model that broca ablates: log-probabilities differ by "
            f"{check.difference:.1e} at most (tolerance {check.tolerance:.1e}), "
            f"{check.same_continuations} continuations are the same."
        )
    if (scored := export.scored) is not None:
        lines.append(
            f"- lm-eval's `hf` model scores {scored.hf:.4f} with it on {scored.task} "
            f"({scored.metric}, {scored.items} items), broca's ablated model {scored.broca:.4f}."
        )
    return ["## Checked", "", *lines] if lines else []
