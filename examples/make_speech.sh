#!/bin/sh
# Makes speech.wav, the recording that examples and tests use: 16 kHz, 16-bit, mono.
#
# Needs Debian's `flite` package. The voice is CMU Arctic "slt" (Carnegie Mellon University, free
# for any use with the notice kept; see flite's COPYING). The text is ours. Speech synthesised with
# it carries no further licence, so speech.wav is CC0-1.0 like the rest of the examples.
set -eu
cd "$(dirname "$0")"
flite -voice slt -o speech.wav -t "Good evening, and welcome to the news at eight. \
Heavy rain moved over the coast this morning, and people in five villages left their homes. \
Members of the fire brigade helped more than sixty families. \
The weather should improve by Friday."
