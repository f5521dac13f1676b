# The course for a plain user, on processors: docker build --tag gpucourse . && docker run --rm --interactive --tty gpucourse
# The first stage is also the system of .devcontainer. What make demo and the exercises need; a learner installs the rest of doctor's list.
FROM python:3.12-slim-bookworm AS system
RUN apt-get update && apt-get install --yes --no-install-recommends g++ git make openssh-client && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --shell /bin/bash learner
RUN install --directory --owner learner /opt/gpucourse /home/learner/gpucourse

FROM system
USER learner
WORKDIR /opt/gpucourse
COPY --chown=learner . .
ENV PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1
RUN make .venv/.local
ENV PATH=/opt/gpucourse/.venv/bin:$PATH
CMD ["bash"]
