#!/bin/sh
# Makes speech.wav, the recording that examples and tests use: 16 kHz, 16-bit, mono.
#
# Needs Debian's `flite` package. The voice is "slt", built from the CMU Arctic databases
# (Copyright Carnegie Mellon University; use, copying, modification and sale are allowed as long as
# the notice stays with the voice itself). The text is our own. The recording is CC0-1.0.
set -eu
cd "$(dirname "$0")"
flite -voice slt -o speech.wav -t "Good evening, and welcome to the news at eight. \
Heavy rain moved over the coast this morning, and people in five villages left their homes. \
Members of the fire brigade helped more than sixty families. \
The weather should improve by Friday."
