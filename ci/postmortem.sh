#!/bin/sh
# A CI job's command under `postmortem capture`, in plain shell. For runners without a recipe of their own:
#
#   sh ci/postmortem.sh run python -m pytest       # the job's command
#   sh ci/postmortem.sh collect                    # afterwards, whatever became of it ("always", "post", "after_script")
#
# `run` becomes postmortem itself, so that the runner's signals reach it: INT or TERM means that the job is being cancelled,
# perhaps because it hangs, and KILL follows ten seconds later. `collect` writes what may be published into
# $POSTMORTEM_DIR/publish: reports, and a bundle without cores. Process memory stays where it is, unless
# POSTMORTEM_MEMORY=yes asks for it.
#
#   POSTMORTEM_DIR       where everything goes                    [./postmortem]
#   POSTMORTEM_TIMEOUT   how long the command may take            [10m]
#   POSTMORTEM_OPTIONS   more options for capture, e.g. "--stall 2m"
#   POSTMORTEM_MEMORY    yes: publish the cores as well. They hold secrets: treat them like the process itself
set -eu

folder=${POSTMORTEM_DIR:-postmortem}
bundle=$folder/bundle
publish=$folder/publish

run() {
    mkdir -p "$folder"
    # shellcheck disable=SC2086 # they are several words
    exec postmortem capture -t "${POSTMORTEM_TIMEOUT:-10m}" --on-cancel capture ${POSTMORTEM_OPTIONS:-} -o "$bundle" -- "$@"
}

collect() {
    if [ ! -d "$bundle" ]; then
        echo "postmortem: the command ended by itself"
        return 0
    fi
    rm -rf "$publish"
    mkdir -p "$publish"
    # the evidence of a capture that KILL has cut short is made now
    postmortem report "$bundle" --strip -o "$publish/bundle.zip" >/dev/null
    postmortem report "$publish/bundle.zip" --report "$publish/report.json" >"$publish/report.txt"
    postmortem report "$publish/bundle.zip" -f markdown >"$publish/report.md"
    if [ "${POSTMORTEM_MEMORY:-no}" = yes ]; then
        tar -C "$folder" -czSf "$publish/bundle-with-memory.tar.gz" bundle
    fi
    if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
        cat "$publish/report.md" >>"$GITHUB_STEP_SUMMARY"
    fi
    if [ -n "${GITHUB_OUTPUT:-}" ]; then
        echo "publish=$publish" >>"$GITHUB_OUTPUT"
    fi
    if [ "${GITHUB_ACTIONS:-}" = true ]; then
        postmortem report "$publish/bundle.zip" -f github # annotations at the lines to change
    else
        cat "$publish/report.txt"
    fi
}

case ${1:-} in
run)
    shift
    run "$@"
    ;;
collect) collect ;;
*)
    echo "usage: postmortem.sh run COMMAND [ARGUMENT]... | postmortem.sh collect" >&2
    exit 2
    ;;
esac
