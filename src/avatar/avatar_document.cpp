#include "avatar/avatar_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json_reader.h"
#include "pack/json_parts.h"

namespace newscaster::avatar {

namespace {

constexpr std::string_view kFormat = "newscaster-avatar";
constexpr std::string_view kNv12 = "nv12";
constexpr int64_t kMinCanvasPx = 16;
constexpr int64_t kMaxCanvasPx = 16'384;
constexpr size_t kMaxSourceFrames = 100'000;
constexpr double kMaxCoefficient = 1e6;
// Below this many canvas pixels per crop pixel, squared, the crop has no area on the canvas.
constexpr double kMinDeterminant = 1e-6;
// The pack's crop bounds the mask; until it is known, this does.
constexpr int64_t kLargestCropPx = 8192;

int parse_canvas_extent(const JsonReader& reader) {
    const int64_t extent = reader.integer(kMinCanvasPx, kMaxCanvasPx);
    if (extent % 2 != 0) reader.fail("an even number of pixels");
    return static_cast<int>(extent);
}

Affine parse_affine(const JsonReader& reader) {
    constexpr size_t kRows = 2;
    constexpr size_t kColumns = 3;
    Affine affine{};
    if (reader.array_size() != kRows) reader.fail("two rows of three numbers");
    for (size_t row = 0; row < kRows; ++row) {
        const JsonReader values = reader.at(row);
        if (values.array_size() != kColumns) values.fail("three numbers");
        for (size_t column = 0; column < kColumns; ++column) {
            affine.at(row * kColumns + column) =
                values.at(column).number(-kMaxCoefficient, kMaxCoefficient);
        }
    }
    if (std::abs(affine[0] * affine[4] - affine[1] * affine[3]) < kMinDeterminant) {
        reader.fail("an invertible map");
    }
    return affine;
}

void parse_source_frames(const JsonReader& reader, AvatarDocument& document) {
    const size_t count = reader.array_size();
    if (count == 0 || count > kMaxSourceFrames) {
        reader.fail(fmt::format("1 to {} source frames", kMaxSourceFrames));
    }
    int64_t entries = 0;
    for (size_t i = 0; i < count; ++i) {
        const JsonReader frame = reader.at(i);
        frame.expect_keys({"crop_to_canvas", "features", "opacity"});
        document.crop_to_canvas.push_back(parse_affine(frame.at("crop_to_canvas")));
        if (frame.has("features") != reader.at(0).has("features")) {
            frame.fail("\"features\" in every source frame, or in none");
        }
        if (frame.has("features")) {
            // A new entry is the next one: none can be missing.
            document.features_of.push_back(frame.at("features").integer(0, entries));
            entries = std::max(entries, document.features_of.back() + 1);
        }
        if (frame.has("opacity")) {
            document.opacity.resize(count, 1.0);
            document.opacity[i] = frame.at("opacity").number(0.0, 1.0);
        }
    }
}

std::vector<std::string> parse_canvas_files(const JsonReader& reader, size_t source_frames) {
    std::vector<std::string> files(reader.array_size());
    if (files.size() != 1 && files.size() != source_frames) {
        reader.fail(fmt::format("one file, or one per source frame ({})", source_frames));
    }
    for (size_t i = 0; i < files.size(); ++i) files[i] = pack::parse_file_name(reader.at(i));
    return files;
}

}  // namespace

AvatarDocument parse_avatar_document(std::string_view json_text, const std::string& origin) {
    const auto json = JsonReader::parse(json_text, origin, ErrorCode::bad_pack);
    const JsonReader root(json, origin, ErrorCode::bad_pack);
    pack::check_format(root, kFormat, kAvatarSchemaVersion);
    root.expect_keys({"format", "schema_version", "name", "title", "license", "pack", "canvas",
                      "source_frames", "mask", "tensors"});
    AvatarDocument document;
    document.name = root.at("name").text();
    document.title = root.at("title").text();
    document.license = root.at("license").text();
    const JsonReader made_for = root.at("pack");
    made_for.expect_keys({"name", "avatar_key"});
    document.pack_name = made_for.at("name").text();
    document.avatar_key = pack::parse_sha256(made_for.at("avatar_key"));
    parse_source_frames(root.at("source_frames"), document);
    const JsonReader canvas = root.at("canvas");
    canvas.expect_keys({"width", "height", "files", "layout"});
    document.width = parse_canvas_extent(canvas.at("width"));
    document.height = parse_canvas_extent(canvas.at("height"));
    document.canvas_files = parse_canvas_files(canvas.at("files"), document.crop_to_canvas.size());
    if (canvas.has("layout")) {
        if (canvas.at("layout").text() != kNv12) canvas.at("layout").fail("\"nv12\", or no layout");
        if (document.canvas_files.size() != 1) canvas.at("files").fail("one file of NV12 frames");
        document.nv12 = true;
    }
    if (root.has("mask")) document.mask = pack::parse_mask(root.at("mask"), kLargestCropPx);
    root.at("tensors").expect_keys({"file", "sha256"});
    document.tensors = pack::parse_file(root.at("tensors"));
    return document;
}

std::string avatar_document_text(const AvatarDocument& document) {
    auto frames = nlohmann::ordered_json::array();
    for (size_t i = 0; i < document.crop_to_canvas.size(); ++i) {
        const Affine& m = document.crop_to_canvas[i];
        const nlohmann::ordered_json rows{{m[0], m[1], m[2]}, {m[3], m[4], m[5]}};
        nlohmann::ordered_json frame{{"crop_to_canvas", rows}};
        if (!document.features_of.empty()) frame["features"] = document.features_of[i];
        if (!document.opacity.empty() && document.opacity[i] < 1.0) {
            frame["opacity"] = document.opacity[i];
        }
        frames.push_back(std::move(frame));
    }
    nlohmann::ordered_json json{
        {"format", kFormat},
        {"schema_version", kAvatarSchemaVersion},
        {"name", document.name},
        {"title", document.title},
        {"license", document.license},
        {"pack", {{"name", document.pack_name}, {"avatar_key", document.avatar_key}}},
        {"canvas",
         {{"width", document.width},
          {"height", document.height},
          {"files", document.canvas_files}}},
        {"source_frames", std::move(frames)}};
    if (document.nv12) json["canvas"]["layout"] = kNv12;
    if (document.mask) {
        json["mask"] = {{"inset_px", document.mask->inset_px},
                        {"feather_px", document.mask->feather_px},
                        {"profile", document.mask->linear ? "linear" : "smoothstep"}};
    }
    json["tensors"] = {{"file", document.tensors.file}, {"sha256", document.tensors.sha256}};
    return json.dump(2) + "\n";
}

}  // namespace newscaster::avatar
