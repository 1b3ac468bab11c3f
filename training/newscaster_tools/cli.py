"""Command line: `newscaster-tools VERB ...`. Data on stdout, errors on stderr.

Exit codes: 0 done, 1 unexpected failure, 2 usage or bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ditto.config import DittoConfig
from ditto.signatures import SIGNATURES
from newscaster_tools.errors import ToolError
from newscaster_tools.files import sha256_of


def _add_size_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--width", type=float, default=1.0, help="multiplier of channel counts (default 1.0)"
    )
    parser.add_argument(
        "--image-size",
        type=int,
        default=256,
        metavar="PX",
        help="side of the extractors' pictures, a multiple of 128 (default 256)",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="newscaster-tools", description="Model tools.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    export = verbs.add_parser("export-ditto", help="write ONNX graphs of Ditto's networks")
    source = export.add_mutually_exclusive_group(required=True)
    source.add_argument("--pth", type=Path, metavar="DIR", help="folder of released .pth files")
    source.add_argument("--seeded", type=int, metavar="N", help="random weights of seed N")
    export.add_argument("--roles", metavar="A,B", help="only these graphs (default: all)")
    export.add_argument(
        "--pack", action="store_true", help="with --seeded: also write constants and pack.json"
    )
    export.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    _add_size_options(export)

    golden = verbs.add_parser("golden-ditto", help="write reference outputs of seeded networks")
    golden.add_argument("--seeded", type=int, default=42, metavar="N", help="seed (default 42)")
    golden.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    _add_size_options(golden)

    skeleton = verbs.add_parser(
        "skeleton-ditto", help="write a seeded pack without its weights, for tests"
    )
    skeleton.add_argument("--seeded", type=int, default=42, metavar="N", help="seed (default 42)")
    skeleton.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    _add_size_options(skeleton)

    importer = verbs.add_parser("import-ditto", help="make a pack of released Ditto checkpoints")
    importer.add_argument("checkpoints", type=Path, metavar="CHECKPOINTS")
    importer.add_argument("-o", "--output", type=Path, required=True, metavar="PACK")
    importer.add_argument(
        "--form",
        choices=("auto", "onnx", "pytorch"),
        default="auto",
        help="which released form to read (default: ditto_pytorch if complete, else ditto_onnx)",
    )
    importer.add_argument(
        "--cfg", type=Path, metavar="PKL", help="cfg pickle (default: the offline one found)"
    )
    importer.add_argument("--name", default="ditto-v0.4", help="the pack's name")
    _add_size_options(importer)
    return parser


def _report(files: dict[str, Path]) -> None:
    written = {
        name: {"file": str(path), "bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for name, path in files.items()
    }
    json.dump({"files": written}, sys.stdout, indent=2)
    print()


def _config(options: argparse.Namespace) -> DittoConfig:
    try:
        return DittoConfig(width=options.width, image_size=options.image_size)
    except ValueError as error:
        raise ToolError(str(error)) from error


def _export(options: argparse.Namespace) -> None:
    # Imported late: PyTorch takes seconds, and --help needs none of it.
    from newscaster_tools import checkpoints, export_ditto, pack_folder
    from newscaster_tools.ditto_cfg import DittoSettings

    config = _config(options)
    offered = list(SIGNATURES)
    if options.pth is not None:
        # HuBERT is not released as a .pth file.
        offered.remove("audio_encoder")
    roles = options.roles.split(",") if options.roles else offered
    for role in roles:
        if role not in offered:
            raise ToolError(f"--roles: found '{role}', wanted some of {', '.join(offered)}")
    if options.pack and (options.pth is not None or not set(roles) >= set(pack_folder.PACK_ROLES)):
        raise ToolError("--pack: wanted together with --seeded and without --roles")
    if options.pth is not None:
        models = checkpoints.models_folder(options.pth)
        _report(export_ditto.export_released(config, models, roles, options.output))
        return
    files = export_ditto.export_seeded(config, options.seeded, roles, options.output)
    if options.pack:
        pack_folder.add_motion_vector_to(files["motion_extractor"], config)
        name = f"ditto-seeded-{options.seeded}"
        files |= pack_folder.finish_pack(options.output, files, name, config, DittoSettings())
    _report(files)


def _golden(options: argparse.Namespace) -> None:
    from newscaster_tools import golden_ditto

    _report(golden_ditto.write_goldens(_config(options), options.seeded, options.output))


def _skeleton(options: argparse.Namespace) -> None:
    from newscaster_tools import skeleton

    _report(skeleton.write_skeletons(_config(options), options.seeded, options.output))


def _import(options: argparse.Namespace) -> None:
    from newscaster_tools import import_ditto

    import_ditto.run(
        import_ditto.Request(
            checkpoints=options.checkpoints,
            output=options.output,
            form=options.form,
            cfg=options.cfg,
            name=options.name,
            config=_config(options),
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    verbs = {
        "export-ditto": _export,
        "golden-ditto": _golden,
        "skeleton-ditto": _skeleton,
        "import-ditto": _import,
    }
    try:
        verbs[options.verb](options)
    except ToolError as error:
        print(f"newscaster-tools: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
