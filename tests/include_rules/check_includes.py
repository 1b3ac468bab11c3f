"""Checks every #include of the tree against the table of rooms below.

    check_includes.py SOURCE_TREE

Prints "file:line: <include>: reason" for each forbidden one and ends with 1 when there is any.
"""

import pathlib
import re
import sys

# Rooms of src/ in the order of the data, and the rooms each may include besides itself.
BELOW_STAGES = ("core", "device", "media", "pack")
STAGES = ("avatar", "registration", "features", "motion", "warp", "decode", "composite", "encode",
          "forensics", "sync")
ROOMS = {
    "core": (),
    "device": ("core",),
    "media": ("core",),
    "pack": ("core", "device", "media"),
    **{stage: BELOW_STAGES for stage in STAGES},
    "pipeline": BELOW_STAGES + STAGES,
}

# Vendor headers (prefix of the path between the brackets) and the folders that may see them.
VENDORS = {
    "openvino/": ("src/device/openvino/",),
    "libavcodec/": ("src/media/", "src/encode/"),
    "libavformat/": ("src/media/", "src/encode/"),
    "libavutil/": ("src/media/", "src/encode/"),
    "libswscale/": ("src/media/", "src/encode/"),
    "libswresample/": ("src/media/", "src/encode/"),
    "soxr.h": ("src/media/",),
    "openssl/": ("src/core/",),
    "opencv2/": ("bench/",),
    "benchmark/": ("bench/",),
    "CLI/": ("apps/", "bench/"),
    "spdlog/": ("apps/",),
    "toml++/": ("apps/",),
    "cuda": ("src/device/cuda/", "src/device/tensorrt/"),
    "cudnn": ("src/device/cuda/",),
    "cublas": ("src/device/cuda/",),
    "nvrtc": ("src/device/cuda/",),
    "Nv": ("src/device/tensorrt/",),
}
# Folders whose files the vendor table binds; tests of several rooms may look at everything.
VENDOR_BOUND = ("include/", "src/", "apps/", "bench/")

TEST_ONLY = ("gtest/", "gmock/")
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def is_test_file(path):
    return path.startswith("tests/") or re.search(r"_test\.\w+$|test_support|test_util", path)


def room_fault(room, target):
    """Why a file of src/<room> must not include "target", or None."""
    if target.startswith("newscaster/"):
        return None
    wanted = target.split("/", 1)[0]
    if "/" not in target or wanted not in ROOMS:
        return "wanted a path that starts with a room, or newscaster/"
    if wanted != room and wanted not in ROOMS[room]:
        allowed = ", ".join(ROOMS[room]) or "no other room"
        return f"{room} may include {allowed}, not {wanted}"
    return None


def fault(path, target):
    """Why the file at `path` (relative to the tree) must not include `target`, or None."""
    top, _, rest = path.partition("/")
    if top in ("include", "src", "apps") and not is_test_file(path):
        for prefix in TEST_ONLY:
            if target.startswith(prefix):
                return "only tests include this"
    if path.startswith(VENDOR_BOUND):
        for prefix, folders in VENDORS.items():
            if target.startswith(prefix) and not path.startswith(folders):
                return f"only {' and '.join(folders)} may include this"
    names_room = target.split("/", 1)[0] in ROOMS and "/" in target
    if top == "include" and names_room:
        return "public headers include public headers only"
    if top in ("apps", "bindings") and names_room:
        return f"{top} sees the engine through include/newscaster only"
    return None


def check_file(tree, path):
    relative = path.relative_to(tree).as_posix()
    room = relative.split("/")[1] if relative.startswith("src/") else None
    if room is not None and room not in ROOMS and relative.count("/") > 1:
        yield f"{relative}:1: src/{room}: not a room of the table"
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, target = match[1] is not None, match[1] or match[2]
        reason = fault(relative, target)
        if reason is None and room is not None:
            # A room's header in angle brackets is still a room's header.
            if quoted or target.split("/", 1)[0] in ROOMS and "/" in target:
                reason = room_fault(room, target)
        if reason is not None:
            yield f"{relative}:{number}: {target}: {reason}"


def check(tree):
    """All faults of the tree, and the number of files read."""
    faults, files = [], 0
    for top in ("include", "src", "apps", "bindings", "bench", "tests", "fuzz", "examples"):
        for path in sorted((tree / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                files += 1
                faults.extend(check_file(tree, path))
    return faults, files


def main(arguments):
    if len(arguments) != 1:
        print("usage: check_includes.py SOURCE_TREE", file=sys.stderr)
        return 2
    faults, files = check(pathlib.Path(arguments[0]).resolve())
    if files == 0:
        print(f"found no C++ file below {arguments[0]}", file=sys.stderr)
        return 2
    for line in faults:
        print(line)
    print(f"{files} files, {len(faults)} forbidden includes")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
