// newscaster_fill_seeded_pack SKELETON TARGET: makes the pack that tests of Ditto's networks run
// on.
#include <cstdio>
#include <exception>

#include "seeded_weights.h"

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: newscaster_fill_seeded_pack SKELETON TARGET\n", stderr);
        return 2;
    }
    try {
        newscaster::test::fill_skeleton(argv[1], argv[2]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
