"""The include check finds planted violations and lets allowed includes pass."""

import pathlib
import tempfile
import unittest

import check_includes

# file, include line, whether it is allowed
CASES = [
    ("src/core/a.cpp", '#include "core/tensor.h"', True),
    ("src/core/a.cpp", '#include "newscaster/error.h"', True),
    ("src/core/a.cpp", "#include <vector>", True),
    ("src/core/a.cpp", '#include "device/device.h"', False),
    ("src/device/device.cpp", '#include "core/tensor.h"', True),
    ("src/device/device.cpp", '#include "pack/pack.h"', False),
    ("src/device/device.cpp", "#include <openvino/openvino.hpp>", False),
    ("src/device/openvino/graph.cpp", "#include <openvino/openvino.hpp>", True),
    ("src/pack/pack.cpp", '#include "device/device.h"', True),
    ("src/pack/pack.cpp", '#include "warp/warp_stage.h"', False),
    ("src/warp/warp_stage.cpp", '#include "pack/manifest.h"', True),
    ("src/warp/warp_stage.cpp", '#include "decode/decode_stage.h"', False),
    ("src/warp/warp_stage.cpp", "#include <decode/decode_stage.h>", False),
    ("src/warp/warp_stage.cpp", '  #  include "decode/decode_stage.h"', False),
    ("src/warp/warp_stage.cpp", '// #include "decode/decode_stage.h"', True),
    ("src/warp/warp_stage.cpp", '#include "warp_stage.h"', False),
    ("src/warp/warp_stage.cpp", '#include "pipeline/engine_impl.h"', False),
    ("src/warp/warp_stage_test.cpp", '#include "decode/decode_stage.h"', False),
    ("src/warp/warp_stage.cpp", "#include <gtest/gtest.h>", False),
    ("src/warp/warp_stage_test.cpp", "#include <gtest/gtest.h>", True),
    ("src/media/source.cpp", "#include <libavformat/avformat.h>", True),
    ("src/encode/writer.cpp", "#include <libavcodec/avcodec.h>", True),
    ("src/features/f.cpp", "#include <libavutil/frame.h>", False),
    ("src/pipeline/render.cpp", '#include "encode/video_writer.h"', True),
    ("src/pipeline/render.cpp", "#include <libavcodec/avcodec.h>", False),
    ("src/composite/c.cpp", "#include <opencv2/core.hpp>", False),
    ("bench/b.cpp", "#include <opencv2/core.hpp>", True),
    ("bench/b.cpp", '#include "composite/compositor.h"', True),
    ("apps/newscaster/main.cpp", '#include "newscaster/engine.h"', True),
    ("apps/newscaster/main.cpp", '#include "progress.h"', True),
    ("apps/newscaster/main.cpp", '#include "core/log.h"', False),
    ("apps/newscaster/main.cpp", "#include <CLI/CLI.hpp>", True),
    ("src/core/a.cpp", "#include <CLI/CLI.hpp>", False),
    ("include/newscaster/engine.h", '#include "newscaster/types.h"', True),
    ("include/newscaster/engine.h", '#include "core/tensor.h"', False),
    ("tests/golden/g.cpp", '#include "motion/composer.h"', True),
    ("src/attic/old.cpp", "#include <vector>", False),
]


class IncludeRules(unittest.TestCase):
    def test_cases(self):
        for file, line, allowed in CASES:
            with self.subTest(file=file, line=line), tempfile.TemporaryDirectory() as folder:
                tree = pathlib.Path(folder)
                path = tree / file
                path.parent.mkdir(parents=True)
                path.write_text(f"#pragma once\n{line}\n", encoding="utf-8")
                faults, files = check_includes.check(tree)
                self.assertEqual(files, 1)
                self.assertEqual(not faults, allowed, faults)

    def test_names_file_and_line(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "src/warp").mkdir(parents=True)
            (tree / "src/warp/w.cpp").write_text('\n\n#include "decode/d.h"\n', encoding="utf-8")
            faults, _ = check_includes.check(tree)
            self.assertEqual(len(faults), 1)
            self.assertTrue(faults[0].startswith("src/warp/w.cpp:3: decode/d.h: "), faults)

    def test_program_reports_by_exit_code(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(check_includes.main([folder]), 2)  # nothing to check is a mistake
            tree = pathlib.Path(folder)
            (tree / "src/core").mkdir(parents=True)
            (tree / "src/core/a.h").write_text("#include <vector>\n", encoding="utf-8")
            self.assertEqual(check_includes.main([folder]), 0)
            (tree / "src/core/a.h").write_text('#include "pack/pack.h"\n', encoding="utf-8")
            self.assertEqual(check_includes.main([folder]), 1)


if __name__ == "__main__":
    unittest.main()
