"""Uploads an export to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from broca.errors import BadInput, first_line


def upload(
    folder: Path, repository: str, *, private: bool = False, endpoint: str | None = None
) -> str:
    """Uploads a folder to a model repository of the hub, which is created if it does not exist.

    Args:
        folder: The export.
        repository: Id of the repository, such as `me/model-without-addition`.
        private: Whether a new repository is private.
        endpoint: The hub; by default that of `HF_ENDPOINT`.

    Returns:
        The address of the repository.

    Raises:
        BadInput: The hub refuses the upload or cannot be reached; the export in `folder` is
            complete.
    """
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint)
    try:
        address = api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Export of broca")
    except Exception as error:  # the network and the hub fail in many ways
        raise BadInput(
            f"`push`: '{repository}' could not be written ({first_line(error)}); log in with "
            f"`hf auth login` or check the name; the export in '{folder}' is whole, `hf upload` "
            "takes it from there"
        ) from error
    return str(address)
