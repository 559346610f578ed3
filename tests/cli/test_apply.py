"""`broca apply` writes a patched model."""

from cli.running import assert_refused, broca
from safetensors.torch import load_file


def test_a_patch_is_applied_and_refused_for_other_models(tmp_path):
    """The model has the patched tensor; other weights and a folder without a patch are refused."""
    patch, out = tmp_path / "patch", tmp_path / "out"
    done = broca("export", "reference-small", "--heads", "L0H1", "--to", patch, "--kind", "patch")
    assert done.returncode == 0, done.stderr
    done = broca("apply", patch, "reference-small", "--to", out)
    assert (done.returncode, done.stdout) == (0, f"written to {out}\n"), done.stderr
    (name,) = load_file(patch / "patch.safetensors")
    changed = load_file(patch / "patch.safetensors")[name]
    assert (load_file(out / "model.safetensors")[name] == changed).all()
    assert_refused(
        broca("apply", patch, "reference", "--to", tmp_path / "other"), "made for other weights"
    )
    assert_refused(broca("apply", tmp_path, "reference", "--to", out), "holds no patch.safetensors")
