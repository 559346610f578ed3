"""GSM8K and HumanEval from local files, by the task definitions of lm-eval."""

import json

import paper_data
import pytest
from tiny import save_tiny, tiny_llama


@pytest.mark.long
def test_texts_and_scores_are_those_of_lm_eval(tmp_path, script, capsys):
    """Texts and scores equal those of lm-eval; `localize` refuses the tasks for a score of 0."""
    for split in ("train", "test"):
        lines = [json.dumps(paper_data._gsm8k(split, row)) for row in range(10)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    lines = [json.dumps(paper_data._humaneval("test", row)) for row in range(9)]
    (tmp_path / "HumanEval.jsonl").write_text("\n".join(lines) + "\n")
    model = save_tiny(tmp_path / "model", tiny_llama(layers=1, context=2048))
    arguments = [
        "--model", model, "--gsm8k", tmp_path, "--humaneval", tmp_path / "HumanEval.jsonl",
        "--limit", 8, "--gen-kwargs", "max_gen_toks=12",
    ]  # fmt: skip
    checks = script("real_tasks").main([str(word) for word in arguments])
    assert [check.task for check in checks] == ["gsm8k_local", "humaneval_local"]
    for check in checks:
        assert check.documents == check.equal_texts == 8
        assert check.broca_score == check.harness_score
    out = capsys.readouterr().out
    assert out.count("refused after scoring the intact model: the intact model scores 0.000") == 2
