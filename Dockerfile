# An image of one command, which was built for it before: see `make images`.
FROM scratch
ARG COMMAND
COPY ${COMMAND} /signalbox
USER 65532:65532
ENTRYPOINT ["/signalbox"]
