"""Pages and plots of the GPU benchmarks.

    python bench/gpu_pages.py RESULTS -o docs/benchmarks

RESULTS holds what bench/gpu.sh measured: diffusion-*.json, sessions-*.json, splice.json and
ditto.json. Writes gpu-engine.md, gpu-engine.json and one SVG per plot.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
WIDTH, HEIGHT, MARGIN = 640, 320, 56
COLOURS = ("#2364aa", "#d1495b", "#3da35d", "#8d5a97")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def plot(
    title: str, x_labels: Sequence[str], series: dict[str, Sequence[float]], unit: str
) -> str:
    """Lines over equally spaced categories, from zero."""
    top = max(max(values) for values in series.values()) * 1.1
    inner_w, inner_h = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN

    def at(i: int, value: float) -> str:
        x = MARGIN + inner_w * (i + 0.5) / len(x_labels)
        return f"{x:.1f},{HEIGHT - MARGIN - inner_h * value / top:.1f}"

    style = 'font-family="sans-serif" font-size="12"'
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {style}>',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="24" font-size="15">{title}</text>',
    ]
    for tick in range(5):
        y = HEIGHT - MARGIN - inner_h * tick / 4
        parts.append(f'<path d="M{MARGIN} {y:.1f}H{WIDTH - MARGIN}" stroke="#ddd"/>')
        label = f"{top * tick / 4:.3g}"
        parts.append(
            f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
        )
    for i, label in enumerate(x_labels):
        x, y = at(i, 0).split(",")
        parts.append(
            f'<text x="{x}" y="{float(y) + 18:.1f}" text-anchor="middle">{label}</text>'
        )
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(at(i, v) for i, v in enumerate(values))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        place = f'x="{WIDTH - MARGIN - 150}" y="{40 + 16 * number}"'
        parts.append(f'<text {place} fill="{colour}">{name}</text>')
    parts.append(f'<text x="{MARGIN}" y="{HEIGHT - 8}" fill="#666">{unit}</text></svg>')
    return "\n".join(parts) + "\n"


def diffusion_part(
    name: str, result: Json, eager_step_ms: float | None, folder: Path
) -> str:
    rows = result["rows"]
    steps = sorted({row["steps"] for row in rows})
    by = {(row["precision"], row["steps"]): row for row in rows}
    cells = []
    for count in steps:
        half = by["f16", count]
        cell = [
            count,
            f"{by['f32', count]['ms']:.2f}",
            f"{half['ms']:.2f}",
            f"{half['motion_fps']:.0f}",
            f"{half['cosine_with_f32']:.9f}",
        ]
        if eager_step_ms is not None:
            cell.append(f"{eager_step_ms * count / half['ms']:.1f}")
        cells.append(cell)
    head = ["steps", "f32 ms", "f16 ms", "motion frames/s (f16)", "cosine f16, f32"]
    if eager_step_ms is not None:
        head.append("over eager PyTorch")
    file = f"gpu-diffusion-{name}.svg"
    series = {p: [by[p, s]["ms"] for s in steps] for p in ("f32", "f16")}
    (folder / file).write_text(
        plot(
            f"DDIM loop, {result['pack']}",
            [f"T = {s}" for s in steps],
            series,
            "milliseconds",
        ),
        encoding="utf-8",
    )
    return (
        f"### {result['pack']}\n\n{table(head, cells)}\n![Latency by steps]({file})\n\n"
    )


def splice_part(result: Json) -> str:
    roi, whole = result["roi"], result["whole_canvas"]
    rows = [
        ["face box", f"{roi['ms_per_frame']:.3f}", roi["bytes_per_frame"]],
        ["whole canvas", f"{whole['ms_per_frame']:.3f}", whole["bytes_per_frame"]],
    ]
    ratio = whole["ms_per_frame"] / roi["ms_per_frame"]
    size = "x".join(str(side) for side in result["canvas"])
    return (
        table(
            ["paste-back, NV12, download, splice", "ms a frame", "bytes a frame"], rows
        )
        + f"\n{result['frames']} frames, canvas {size}: the box is {ratio:.1f} times faster; "
        + f"{result['differing_bytes']} bytes differ.\n\n"
    )


def sessions_part(name: str, result: Json, folder: Path) -> str:
    rows = result["rows"]
    cells = [
        [
            row["sessions"],
            f"{row['fps']:.0f}",
            f"{row['first_frame_ms']:.0f}",
            f"{row['open_ms']:.0f}",
        ]
        for row in rows
    ]
    head = ["sessions", "frames/s, all", "slowest first frame ms", "opening one ms"]
    stages = rows[0]["stages_of_first"]
    spent = ", ".join(f"{k} {v['busy_ms']:.0f}" for k, v in stages.items())
    file = f"gpu-sessions-{name}.svg"
    labels = [str(row["sessions"]) for row in rows]
    series = {"frames/s": [row["fps"] for row in rows]}
    (folder / file).write_text(
        plot(
            f"Sessions side by side, {result['pack']}",
            labels,
            series,
            "frames/s of all sessions",
        ),
        encoding="utf-8",
    )
    return (
        f"### {result['pack']}\n\n{result['seconds']:.1f} s of speech each, batches of "
        f"{result['batch']}, {result['precision']}; load {result['load_ms'] / 1000:.0f} s.\n\n"
        f"{table(head, cells)}\nOne session alone spends (ms): {spent}; wall "
        f"{rows[0]['wall_ms']:.0f}.\n\n![Throughput]({file})\n\n"
    )


INTRO = """# The engine on a GPU

Written by `bench/gpu_pages.py` from what `bench/gpu.sh` measured; as measured:
[gpu-engine.json](gpu-engine.json). `ditto-seeded` is Ditto v0.4 at full size with random weights,
exported where the benchmark ran.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    results: dict[str, Json] = {
        file.stem: json.loads(file.read_text(encoding="utf-8"))
        for file in sorted(options.results.glob("*.json"))
        if file.stem == "splice"
        or file.stem.startswith(("diffusion-", "sessions-", "ditto"))
    }
    ditto = results.get("ditto", {})
    eager = ditto.get("roles", {}).get("motion_generator", {}).get("eager_fp16_ms")
    page = INTRO
    first = next(iter(results.values()))
    page += f"{first.get('device', first.get('gpu'))}, {first.get('runtime', '')}"
    page += (
        f"; {ditto['driver_and_clocks']}, PyTorch {ditto['torch']}.\n\n"
        if ditto
        else ".\n\n"
    )
    page += "## Diffusion\n\nThe whole DDIM loop of one window, latents and schedule on the GPU, as "
    page += "one recording; upload and download included. Eager PyTorch: fp16 autocast, one step "
    page += "measured in the same run, times the steps.\n\n"
    for name in [key for key in results if key.startswith("diffusion-")]:
        step = eager if name.endswith("full") else None
        page += diffusion_part(
            name.removeprefix("diffusion-"), results[name], step, options.output
        )
    if "splice" in results:
        page += "## Paste-back\n\n" + splice_part(results["splice"])
    page += (
        "## Sessions\n\nThe first frame counts from the moment the sound is there.\n\n"
    )
    for name in [key for key in results if key.startswith("sessions-")]:
        page += sessions_part(
            name.removeprefix("sessions-"), results[name], options.output
        )
    (options.output / "gpu-engine.md").write_text(page, encoding="utf-8")
    (options.output / "gpu-engine.json").write_text(
        json.dumps(results, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
