"""Every step of the recipe at toy size, on a CPU, in minutes: proves that the recipe runs.

The pack that comes out has the shipped pack's graphs and contracts; its pictures are worthless.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from studio import commands
from studio.export import SpeechNets, export_avatar, export_pack
from studio.fit.audio import AudioOptions
from studio.fit.motion import MotionOptions
from studio.fit.pictures import PictureOptions
from studio.voices import corpus

_FACES = commands.FaceOptions(
    people=1, held_out=1, sketches=6, strands=1200, occlusion_directions=2, samples=1,
    sources_each=1, presenter_names=("anna",),
)  # fmt: skip
_SPEECH_MINUTES, _SECOND = 0.5, 1 / 60


def run(makehuman: Path, work: Path, output: Path, seed: int, workers: int) -> None:
    """Writes OUTPUT/pack and OUTPUT/avatars/anna; prints how long each step took."""
    started = time.monotonic()

    def done(step: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {step}", flush=True)

    work.mkdir(parents=True, exist_ok=True)
    speech = work / "corpus.npz"
    corpus.save(corpus.generate(_SPEECH_MINUTES, seed, workers, 0.3), speech)
    done("corpus")
    audio = AudioOptions(5 * _SECOND, batch=4, frames=20, seed=seed)
    motion = MotionOptions(5 * _SECOND, takes=1, batch=8, seed=seed, workers=workers)
    commands.fit_speech(speech, work, audio, motion)
    done("audio encoder, motion generator")
    studio = commands.open_studio(makehuman, work, _FACES, seed)
    done("faces")
    pictures = PictureOptions(
        15 * _SECOND, batch=2, rendered=1, pool=8, fill=2, cache_from=0.3, seed=seed
    )
    nets = commands.fit_pictures(studio, _FACES, work, pictures, 3 * _SECOND)
    done("keypoint code, appearance, warp, decoder, motion extractor")
    encoder, generator, mean, std = commands.load_speech_nets(work)
    nets = commands.load_picture_nets(studio, work).to(studio.data.device)
    manifest = export_pack(
        SpeechNets(encoder, generator, mean, std), nets, studio.keypoints.basis, output / "pack",
        "0.0.0",
    )  # fmt: skip
    anna = studio.identities[0]
    export_avatar(studio.data, nets, 0, "anna", anna, manifest, output / "avatars" / "anna", 1)
    done("pack and avatar")
    logs = {p.name: p.read_text("utf-8").splitlines()[-1] for p in sorted(work.glob("*.jsonl"))}
    print(json.dumps({name: json.loads(line) for name, line in logs.items()}, indent=1))
