"""The recipe's networks and data: shapes, streaming, resuming, files."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")
pytest.importorskip("safetensors")

from studio.fit.audio import AudioOptions, train_audio  # noqa: E402
from studio.fit.progress import Clock, between, load_checkpoint  # noqa: E402
from studio.fit.speech_data import SpeechData  # noqa: E402
from studio.manifest import group_keypoints  # noqa: E402
from studio.models.audio_encoder import AudioEncoder, context_samples  # noqa: E402
from studio.models.motion_generator import (  # noqa: E402
    CONDITION_DIMS,
    SLOW_DIMS,
    WINDOW,
    MotionGenerator,
    sample,
)
from studio.voices import corpus  # noqa: E402
from studio.voices.arkit import (  # noqa: E402
    ARKIT,
    BLENDSHAPE,
    MOTION_DIMS,
    NEUTRAL,
    PITCH,
    YAW,
)
from studio.voices.augment import Augmenter  # noqa: E402
from studio.voices.performance import Prosody, perform  # noqa: E402
from studio.voices.phones import PHONE_INDEX, SILENCE, Segment  # noqa: E402


def session(seed: int, held_out: bool = False) -> corpus.Session:
    """Two seconds of noise bursts with made-up phones."""
    rng = random.Random(seed)
    segments, at = [], 0.0
    while at < 2.0:
        end = min(2.0, at + rng.uniform(0.06, 0.2))
        phone = rng.choice([SILENCE, PHONE_INDEX["aa"], PHONE_INDEX["m"], PHONE_INDEX["s"]])
        segments.append(Segment(phone, at, end))
        at = end
    samples = np.random.default_rng(seed).standard_normal(32000).astype(np.float32) * 0.05
    return corpus.Session(f"voice{seed}", held_out, samples, segments)


def test_corpus_file_keeps_sessions(tmp_path: Path) -> None:
    sessions = [session(1), session(2, held_out=True)]
    corpus.save(sessions, tmp_path / "corpus.npz")
    loaded = corpus.load(tmp_path / "corpus.npz")
    for before, after in zip(sessions, loaded, strict=True):
        assert (after.voice, after.held_out) == (before.voice, before.held_out)
        assert [s.phone for s in after.segments] == [s.phone for s in before.segments]
        assert np.abs(after.samples - before.samples).max() < 0.01
        assert after.segments[-1].end == pytest.approx(before.segments[-1].end, abs=1e-5)


def test_encoder_streams_as_it_runs_offline() -> None:
    torch.manual_seed(0)
    encoder = AudioEncoder().eval()
    sound = torch.randn(1, context_samples(20)) * 0.1
    with torch.no_grad():
        whole = encoder(sound)[0]
        chunks = [
            encoder(sound[:, 640 * i : 640 * i + context_samples(5)])[0] for i in (0, 5, 10, 15)
        ]
    assert whole.shape == (1, 20, 80)
    assert torch.allclose(whole, torch.cat(chunks, 1), atol=1e-5)


def test_generator_joins_the_frame_before_and_repeats() -> None:
    torch.manual_seed(0)
    model = MotionGenerator().eval()
    before = torch.zeros(1, MOTION_DIMS)
    before[0, PITCH] = 2.0
    condition = torch.rand(1, WINDOW, CONDITION_DIMS)
    noise = torch.randn(1, WINDOW, MOTION_DIMS)
    with torch.no_grad():
        made = sample(model, noise, before, condition)
        assert torch.equal(made, sample(model, noise, before, condition))
    assert made.shape == (1, WINDOW, MOTION_DIMS)
    slow = made[0, :, SLOW_DIMS]
    jerk = slow.diff(n=3, dim=0).abs().mean()
    fast = made[0, :, [d for d in range(MOTION_DIMS) if d not in SLOW_DIMS]].diff(n=3, dim=0)
    assert jerk < fast.abs().mean()


def test_eyes_look_against_the_turn_of_the_head() -> None:
    """Positive yaw turns to the subject's right; eyes that hold the camera look left."""
    frames = 4000
    speech = np.ones(frames)
    motion, blinks = perform(
        np.zeros((frames, 16)),
        Prosody(speech, speech, np.zeros(frames)),
        NEUTRAL,
        np.random.default_rng(1),
    )
    left = motion[:, BLENDSHAPE["eyeLookOutLeft"]] - motion[:, BLENDSHAPE["eyeLookInLeft"]]
    assert np.corrcoef(motion[:, YAW], left)[0, 1] > 0.3
    assert 0.02 < blinks.mean() < 0.2
    assert motion[:, 7:].min() >= 0
    assert motion[:, 7:].max() <= 1


def test_augmentation_is_seeded_and_bounded() -> None:
    speech = torch.randn(6, 16000) * 0.07

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        torch.manual_seed(4)
        return Augmenter(16000, torch.device("cpu"))(speech, 0.5)

    (first, silent), (again, _) = run(), run()
    assert torch.equal(first, again)
    assert torch.isfinite(first).all()
    assert first.abs().max() < 1.1
    assert 0 < silent.sum() < 6


def test_training_resumes(tmp_path: Path) -> None:
    sessions = [session(1), session(2), session(3, held_out=True)]
    labels = [corpus.labels_of(s) for s in sessions]
    data = SpeechData(sessions, labels, torch.device("cpu"))
    options = AudioOptions(1e-5, batch=2, frames=10)
    steps = []
    for _ in range(2):
        train_audio(data, tmp_path, options)
        saved = load_checkpoint(tmp_path / "audio_encoder.pt", torch.device("cpu"))
        assert saved is not None
        steps.append(saved["step"])
    assert steps[1] > steps[0] > 0
    assert len((tmp_path / "audio_encoder.jsonl").read_text().splitlines()) >= 2


def test_time_spent_before_counts() -> None:
    assert Clock(1.0).share == pytest.approx(0, abs=0.05)
    assert Clock(1.0, spent=30.0).share == pytest.approx(0.5, abs=0.05)
    assert Clock(1.0, spent=90.0).share == 1.0


def test_keypoint_groups_follow_the_basis() -> None:
    basis = np.zeros((52, 48, 3), np.float32)
    basis[ARKIT.index("mouthFunnel"), 7, 0] = 0.05
    basis[ARKIT.index("eyeBlinkLeft"), 9, 1] = 0.02
    groups = group_keypoints(basis, list(ARKIT))
    assert (groups["lips"], groups["eyes"]) == ([7], [9])


def test_weights_between_begin_and_end() -> None:
    begin = {"w": torch.tensor([0.0, 2.0]), "n": torch.tensor(3)}
    end = {"w": torch.tensor([1.0, 4.0]), "n": torch.tensor(5)}
    assert torch.allclose(between(begin, end, 0.25)["w"], torch.tensor([0.25, 2.5]))
    assert between(begin, end, 0.25)["n"] == 5
    assert torch.equal(between(begin, end, 0.0)["w"], begin["w"])
    assert torch.equal(between(begin, end, 1.0)["w"], end["w"])
