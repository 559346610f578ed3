# broca with bubblewrap, which isolates the programs of code tasks.
#
#     docker build -t broca . && docker run --rm -v "$PWD:/home/broca" broca doctor
#
# For GPUs, a torch for CUDA (and `docker run --gpus all`):
#
#     docker build -t broca --build-arg INDEX=https://pypi.org/simple .
FROM python:3.12-slim-bookworm

ARG TORCH=torch==2.13.0
ARG INDEX=https://download.pytorch.org/whl/cpu

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/broca
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --index-url "${INDEX}" "${TORCH}" \
    && pip install --no-cache-dir -c constraints.txt '.[export,profanity]'

RUN useradd --create-home --uid 1000 broca
USER 1000
WORKDIR /home/broca
ENV HF_HOME=/home/broca/.cache/huggingface

ENTRYPOINT ["broca"]
