"""The recipe's commands; `python -m studio COMMAND --help` explains each."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from studio.fit.audio import AudioOptions, train_audio
from studio.fit.motion import MotionOptions, make_performances, train_motion
from studio.fit.progress import best_device, half, restore, save_checkpoint
from studio.fit.speech_data import SpeechData
from studio.models.audio_encoder import AudioEncoder
from studio.voices import corpus

WEIGHTS = "weights"  # what export reads, fp16: WORK/weights/<graph>.pt


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


def _speech(options: argparse.Namespace) -> tuple[SpeechData, list[corpus.Labels]]:
    sessions = corpus.load(options.corpus)
    with ProcessPoolExecutor(options.workers) as pool:
        labels = list(pool.map(corpus.labels_of, sessions, chunksize=4))
    return SpeechData(sessions, labels, best_device()), labels


def _start(options: argparse.Namespace, name: str) -> dict[str, torch.Tensor] | None:
    if options.start_from is None:
        return None
    state: dict[str, torch.Tensor] = torch.load(options.start_from, map_location="cpu")[name]
    return {k: v.float() if v.is_floating_point() else v for k, v in state.items()}


def speech(options: argparse.Namespace) -> None:
    """Audio encoder, then the motion generator on its features."""
    data, labels = _speech(options)
    audio = AudioOptions(
        options.minutes * options.audio_share,
        batch=options.batch,
        peak_rate=options.rate,
        seed=options.seed,
        start_from=_start(options, "audio"),
    )
    encoder = train_audio(data, options.work, audio)
    weights = options.work / WEIGHTS
    save_checkpoint(weights / "audio_encoder.pt", state=half(encoder.state_dict()))
    shipped = AudioEncoder().to(data.device)
    restore(shipped, half(encoder.state_dict()))
    shipped.eval()
    motion = MotionOptions(
        options.minutes * (1 - options.audio_share),
        takes=options.takes,
        batch=options.batch,
        peak_rate=options.rate / 2,
        seed=options.seed,
        workers=options.workers,
        start_from=_start(options, "motion"),
        statistics=None if options.start_from is None else _statistics(options.start_from),
    )
    performances = make_performances(data, labels, shipped, motion)
    generator = train_motion(performances, options.work, motion)
    save_checkpoint(
        weights / "motion_generator.pt",
        state=half(generator.state_dict()),
        mean=performances.statistics.mean.cpu(),
        std=performances.statistics.std.cpu(),
    )


def _statistics(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    stored = torch.load(path, map_location="cpu")
    return stored["mean"], stored["std"]


def start_from_pack(options: argparse.Namespace) -> None:
    """Reads a pack's audio encoder and motion generator back, so that training can go on."""
    from studio.fit import import_graphs  # needs onnx, which training does not

    sessions = corpus.load(options.corpus)[:16]
    frames = min(len(s.samples) for s in sessions) // 640 * 640
    samples = torch.stack([torch.from_numpy(s.samples[:frames]) for s in sessions])
    mean, std = import_graphs.motion_statistics(options.pack / "constants.safetensors")
    audio = import_graphs.audio_encoder_state(options.pack / "audio_encoder.onnx", samples)
    motion = import_graphs.motion_generator_state(options.pack / "motion_generator.onnx")
    save_checkpoint(options.output, audio=half(audio), motion=half(motion), mean=mean, std=std)


def main() -> None:
    parser = argparse.ArgumentParser(prog="studio", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    workers = os.cpu_count() or 1

    def add(
        name: str, run: Callable[[argparse.Namespace], None], text: str
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--workers", type=int, default=workers)
        return command

    command = add("voices", voices, "Synthesise a speech corpus with exact phone times.")
    command.add_argument("--minutes", type=float, default=600, help="length (default 600)")
    command.add_argument("--held-out-minutes", type=float, default=4)
    command.add_argument("--engines", nargs="+", choices=corpus.ENGINES, default=corpus.ENGINES)
    command.add_argument("-o", "--output", type=Path, required=True, help="corpus.npz")

    command = add("train-speech", speech, "Train the audio encoder and the motion generator.")
    command.add_argument("--corpus", type=Path, required=True)
    command.add_argument("--work", type=Path, required=True, help="checkpoints, logs, weights")
    command.add_argument("--minutes", type=float, required=True, help="wall-clock limit of both")
    command.add_argument("--audio-share", type=float, default=0.6, help="of the minutes")
    command.add_argument("--batch", type=int, default=256)
    command.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    command.add_argument("--takes", type=int, default=3, help="performances of every session")
    command.add_argument("--start-from", type=Path, help="file of start-from-pack")

    command = add("start-from-pack", start_from_pack, "Read weights back from a pack's graphs.")
    command.add_argument("pack", type=Path)
    command.add_argument("--corpus", type=Path, required=True, help="typical sound")
    command.add_argument("-o", "--output", type=Path, required=True)

    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
