# An image with the commands qm1b, pyscf-ipu, nanodft and schnet.
#   docker build -t pyscf-ipu .
#   docker run --rm -v "$PWD:/work" -v pyscf-ipu-programs:/programs pyscf-ipu \
#       qm1b generate my.smi --out data/mine
# The volume keeps compiled programs from one container to the next.

FROM python:3.12-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt \
        "$(ls /wheels/*.whl)[train,cluster]" \
    && rm -rf /wheels \
    && useradd --create-home chemist \
    && install -d -o chemist /programs /work
USER chemist
ENV PYSCF_IPU_CACHE=/programs
WORKDIR /work
CMD ["pyscf-ipu", "info"]
