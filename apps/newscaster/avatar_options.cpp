#include "avatar_options.h"

#include "engine_options.h"
#include "numbers.h"

namespace newscaster::cli {

namespace {

constexpr const char* kFooter =
    "The face is found by itself. --crop says instead which square of the picture is redrawn "
    "while\n"
    "the avatar speaks: the head with some room around it. X,Y is its upper left corner in pixels\n"
    "of the upright picture, SIZE its side, ANGLE turns it clockwise about its centre, for a head\n"
    "that leans; with -v the command prints the square it used.\n"
    "\n"
    "Examples: newscaster avatar create me.jpg -o me\n"
    "          newscaster avatar create us.jpg -o me --face 2\n"
    "          newscaster avatar create me.jpg -o me --crop 510,80,640\n"
    "          newscaster avatar create me.mp4 -o me\n"
    "          newscaster render speech.wav -a me";

constexpr const char* kPreviewFooter =
    "PREFIX.png shows the canvas: dark where the picture stays as it is, the crop that is redrawn\n"
    "(white), the box that is written (yellow), the face's points (green; the pack's keypoints,\n"
    "magenta, where no face is found). PREFIX.mp4 is the avatar speaking for three seconds.\n"
    "\n"
    "Examples: newscaster avatar preview me\n"
    "          newscaster avatar preview me --audio speech.wav -o looks/me";

template <typename Request>
void add_engine_options(CLI::App& verb, Request& request) {
    add_device_options(verb, request);
    add_threads_option(verb, request.threads);
    verb.add_flag("--no-cache", request.no_cache, "Do not keep compiled graphs");
}

}  // namespace

void add_preview_options(CLI::App& verb, AvatarPreviewRequest& request) {
    verb.footer(kPreviewFooter);
    verb.add_option("avatar", request.avatar, "Bundled name or folder")
        ->type_name("AVATAR")
        ->capture_default_str();
    verb.add_option("-o,--output", request.output,
                    "Files to write, without their endings [NAME-preview]")
        ->type_name("PREFIX");
    verb.add_option("--audio", request.audio, "Speech; its first 3 seconds [bundled]")
        ->type_name("FILE");
    verb.add_option("--detectors", request.detectors, "Folder of the face detectors [bundled]")
        ->type_name("DIR");
    add_engine_options(verb, request);
}

void add_avatar_options(CLI::App& verb, AvatarCreateRequest& request) {
    verb.footer(kFooter);
    verb.add_option("source", request.source, "Still picture (JPEG, PNG, WebP, ...) or video")
        ->required()
        ->type_name("SOURCE");
    verb.add_option("-o,--output", request.output, "Folder of the avatar to write")
        ->required()
        ->type_name("DIR");
    verb.add_option("--face", request.face,
                    "Which face: largest, center, 1 for the largest, 2 for the next, ..., or X,Y "
                    "for the one nearest to this pixel")
        ->type_name("WHICH")
        ->capture_default_str();
    verb.add_option("--crop", request.crop,
                    "Square to redraw, in pixels of the picture [found by the face detectors]")
        ->type_name("X,Y,SIZE[,ANGLE]");
    verb.add_option("--crop-scale", request.crop_scale,
                    "Side of the square in sizes of the found face, 1 to 10 [the pack's]")
        ->type_name("TIMES");
    verb.add_option("--vx", request.shift_x,
                    "Shift of the square to the right, in its sides, -1 to 1 [the pack's]")
        ->type_name("SHARE");
    verb.add_option("--vy", request.shift_y,
                    "Shift of the square down the face, in its sides, -1 to 1 [the pack's]")
        ->type_name("SHARE");
    verb.add_option("--max-size", request.max_size,
                    "Longest side of the video; larger sources are made smaller first [kept]")
        ->type_name("PIXELS");
    verb.add_option("--background", request.background,
                    "What shows through transparent parts: a colour like #00b140, or a picture "
                    "[white]")
        ->type_name("COLOUR|FILE");
    verb.add_option("--smooth-source", request.smooth_source,
                    "Video: frames over which the place of the face is averaged, odd")
        ->type_name("FRAMES")
        ->capture_default_str();
    verb.add_option("--detectors", request.detectors, "Folder of the face detectors [bundled]")
        ->type_name("DIR");
    verb.add_flag("--preview", request.preview,
                  "Add preview.png and preview.mp4 to the folder, as avatar preview makes them");
    verb.add_flag("--force", request.force, "Replace an avatar that is there already");
    verb.add_option("--name", request.name, "The avatar's name [the folder's]")->type_name("TEXT");
    verb.add_option("--title", request.title, "Name for people [the name]")->type_name("TEXT");
    verb.add_option("--license", request.license, "Licence of the picture")
        ->type_name("TEXT")
        ->capture_default_str();
    verb.add_option(
            "--eye-open", request.eye_open,
            "Opening of left and right eye, 0 closed [measured]; some packs' motion reads it")
        ->type_name("L,R");
    verb.add_option("--eye-ball", request.eye_ball,
                    "Movement of the irises: x left, x right, y, y, z, z [measured]")
        ->type_name("NUMBERS");
    add_engine_options(verb, request);
}

AvatarSource make_source(const AvatarCreateRequest& request) {
    AvatarSource source;
    source.picture = request.source;
    source.folder = request.output;
    source.replace = request.force;
    source.name = request.name;
    source.title = request.title;
    source.license = request.license;
    source.face = request.face;
    source.crop_scale = request.crop_scale;
    source.crop_shift_x = request.shift_x;
    source.crop_shift_y = request.shift_y;
    source.max_size = request.max_size;
    source.background = request.background;
    source.smooth_source = request.smooth_source;
    source.detectors = request.detectors;
    if (!request.crop.empty()) {
        std::array<double, 4> box{};
        parse_numbers("--crop", request.crop, 3, box);
        source.crop = {.x = box[0], .y = box[1], .size = box[2], .angle_deg = box[3]};
    }
    if (!request.eye_open.empty()) {
        auto& values = source.eye_open.emplace();
        parse_numbers("--eye-open", request.eye_open, values.size(), values);
    }
    if (!request.eye_ball.empty()) {
        auto& values = source.eye_ball.emplace();
        parse_numbers("--eye-ball", request.eye_ball, values.size(), values);
    }
    return source;
}

}  // namespace newscaster::cli
