# An image of one command, which was built for it before: see `make images`.
FROM scratch
ARG COMMAND
ARG TARGETARCH
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="signalbox-${COMMAND}" \
      org.opencontainers.image.description="The ${COMMAND} of Signalbox: exact deadlines, lifecycle policies and runtime snapshots for Kubeflow TrainJobs" \
      org.opencontainers.image.source="https://github.com/signalbox-dev/signalbox" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY signalbox-${COMMAND}-linux-${TARGETARCH} /signalbox
USER 65532:65532
ENTRYPOINT ["/signalbox"]
