"""The GPU benchmark runs from end to end on a tiny model."""


def test_every_part_is_measured(script, capsys):
    """Every figure is positive and has a line in the table."""
    (report,) = script("gpu").main(["--device", "cpu", "--shape", "tiny"])
    parts = {name.partition(":")[0] for name in report.figures}
    assert parts == {"matrix rate", "load", "choice", "generation", "gradients", "peak memory, GiB"}
    assert all(value > 0 for value in report.figures.values())
    assert capsys.readouterr().out.count("\n| ") == len(report.figures)


def test_operations_are_those_of_weights_that_tokens_meet(script):
    """The embedding does not count; the LM head counts predicted tokens."""
    gpu = script("gpu")
    with gpu.torch.device("meta"):
        tiny = gpu.random_model(gpu.SHAPES["tiny"], "meta")
    layer = 64 * 64 * 2 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 64  # projections, gates and norms
    expected = 2 * ((2 * layer + 64) * 10 + 300 * 64 * 3)
    assert gpu.operations_of(tiny, read=10, predicted=3) == expected
