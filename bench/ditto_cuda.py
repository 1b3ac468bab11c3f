"""Full-size Ditto networks on a GPU: newscaster's cuda provider against PyTorch, in one run.

    python bench/ditto_cuda.py BENCH_PROGRAM -o results.json [--compile] [--batch 8]

BENCH_PROGRAM is newscaster_cuda_bench. Networks and seeded weights come from training/ditto; the
graphs are exported where this runs. PyTorch is timed eager under fp16 autocast and, with --compile,
as torch.compile's max-autotune of the same; medians of 20 after 5 to warm up. Needs PyTorch with
CUDA, onnx and safetensors.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from ditto.config import DittoConfig
from ditto.signatures import SIGNATURES, Signature
from newscaster_tools.export_ditto import export_network, exportable, seeded_network

REPEATS = 20
WARM_UP = 5
SEED = 42
GEMM_SIDE = 8192
# Standard deviation of made-up inputs; keypoints are made by `made_up`.
DEVIATIONS = {"f_s": 0.5, "feature": 0.5, "cond_frame": 0.3, "cond": 0.3}


def median_ms(action: Callable[[], Any]) -> float:
    for _ in range(WARM_UP):
        action()
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        action()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def gemm_tflops() -> float:
    a, b = (torch.randn(GEMM_SIDE, GEMM_SIDE, device="cuda").half() for _ in range(2))
    return 2 * GEMM_SIDE**3 / median_ms(lambda: a @ b) * 1e-9


def made_up(signature: Signature, batch: int) -> dict[str, Tensor]:
    torch.manual_seed(1)
    inputs: dict[str, Tensor] = {}
    for name, shape in signature.inputs.items():
        full = (batch, *shape[1:]) if signature.batched else shape
        if name == "time_cond":
            inputs[name] = torch.tensor([499])
        elif name == "kp_source":
            inputs[name] = torch.rand(full) * 0.6 - 0.3
        elif name == "kp_driving":
            inputs[name] = inputs["kp_source"] + 0.02 * torch.randn(full)
        else:
            inputs[name] = torch.randn(full) * DEVIATIONS.get(name, 1.0)
    return inputs


def psnr_db(found: Tensor, wanted: Tensor) -> float:
    error = (found - wanted).square().mean()
    return float("inf") if error == 0 else (-10 * torch.log10(error)).item()


def compared(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, Any]:
    result = {}
    for name, value in wanted.items():
        mine = found[name].float()
        cosine = torch.nn.functional.cosine_similarity(
            mine.flatten().double(), value.flatten().double(), dim=0
        )
        result[name] = {
            "mean_abs_error": (mine - value).abs().mean().item(),
            "max_abs_error": (mine - value).abs().max().item(),
            "scale": value.abs().max().item(),
            "cosine": cosine.item(),
        }
        if name == "image":
            result[name]["psnr_db"] = psnr_db(mine, value)
    return result


class Role:
    """One network: its graph on disk, its inputs, and what f32 makes of them."""

    def __init__(self, role: str, batch: int, folder: Path) -> None:
        config = DittoConfig()
        signature = SIGNATURES[role](config)
        self.batch = batch if signature.batched else 1
        network = seeded_network(role, config, SEED)
        self.graph = folder / f"{role}.onnx"
        export_network(role, network, config, self.graph)
        self.network: nn.Module = exportable(role, network).cuda().eval()
        inputs = made_up(signature, self.batch)
        self.names = list(signature.outputs)
        self.on_gpu = tuple(value.cuda() for value in inputs.values())
        self.files = {kind: folder / f"{role}.{kind}.safetensors" for kind in ("in", "out")}
        save_file({name: value.contiguous() for name, value in inputs.items()}, self.files["in"])

    @torch.no_grad()
    def reference(self) -> dict[str, Tensor]:
        outputs = self.network(*self.on_gpu)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return {n: o.float().cpu() for n, o in zip(self.names, outputs, strict=True)}

    @torch.no_grad()
    def torch_ms(self, mode: str | None) -> float:
        """Median under fp16 autocast: eager, or compiled in a mode of torch.compile."""
        network = self.network
        if mode is not None:
            network = torch.compile(network, mode=mode)

        def once() -> None:
            with torch.autocast("cuda", dtype=torch.float16):
                network(*self.on_gpu)

        return median_ms(once)

    def ours(self, program: Path, precision: str) -> dict[str, Any]:
        command = [str(program), "--profile", "--inputs", str(self.files["in"])]
        command += ["--outputs", str(self.files["out"]), precision, str(self.batch)]
        done = subprocess.run(
            [*command, str(self.graph)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            return {"error": done.stderr.strip()[-800:]}
        return json.loads(done.stdout)


def measure(
    role: str, options: argparse.Namespace, folder: Path, result: dict[str, Any]
) -> Iterator[None]:
    """Fills in `result`; yields when there is something worth keeping."""
    made = Role(role, options.batch, folder)
    wanted = made.reference()
    result |= {"batch": made.batch, "eager_fp16_ms": made.torch_ms(None)}
    for precision in options.precisions.split(","):
        ours = made.ours(options.program, precision)
        if "error" not in ours:
            ours["against_f32"] = compared(load_file(made.files["out"]), wanted)
        result[precision] = ours
        yield
    if options.compile:  # max-autotune takes minutes where convolutions are 3-D
        result |= {
            "compile_mode": options.compile,
            "compile_fp16_ms": made.torch_ms(options.compile),
        }
        yield


def clocks() -> str:
    query = "--query-gpu=driver_version,clocks.sm,clocks.mem"
    command = ["nvidia-smi", query, "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("program", type=Path, metavar="BENCH_PROGRAM")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--roles", default="warp,decoder,motion_generator")
    parser.add_argument("--precisions", default="f16")
    parser.add_argument(
        "--compile",
        metavar="MODE",
        nargs="?",
        const="max-autotune",
        help="time torch.compile as well: default, reduce-overhead or max-autotune",
    )
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    results: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "driver_and_clocks": clocks(),
        "gemm_fp16_tflops": gemm_tflops(),
        "roles": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        for role in options.roles.split(","):
            result = results["roles"][role] = {}
            for _ in measure(role, options, Path(folder), result):
                options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            times = {k: v for k, v in result.items() if k.endswith("ms")}
            print(role, times, flush=True)


if __name__ == "__main__":
    main()
