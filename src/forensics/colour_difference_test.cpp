// CIEDE2000 against the pairs that Sharma, Wu and Dalal published with the formula (their table 1).
#include "forensics/colour_difference.h"

#include <gtest/gtest.h>

#include <random>

namespace newscaster::forensics {
namespace {

struct Pair {
    Lab first, second;
    double wanted;
};

TEST(ColourDifference, AgreesWithThePublishedPairs) {
    const Pair pairs[] = {{{50.0, 2.6772, -79.7751}, {50.0, 0.0, -82.7485}, 2.0425},
                          {{50.0, 3.1571, -77.2803}, {50.0, 0.0, -82.7485}, 2.8615},
                          {{50.0, 2.8361, -74.0200}, {50.0, 0.0, -82.7485}, 3.4412},
                          {{50.0, -1.3802, -84.2814}, {50.0, 0.0, -82.7485}, 1.0000},
                          {{50.0, 0.0, 0.0}, {50.0, -1.0, 2.0}, 2.3669},
                          {{50.0, -1.0, 2.0}, {50.0, 0.0, 0.0}, 2.3669},
                          {{50.0, 2.4900, -0.0010}, {50.0, -2.4900, 0.0009}, 7.1792},
                          {{50.0, 2.4900, -0.0010}, {50.0, -2.4900, 0.0011}, 7.2195},
                          {{50.0, -0.0010, 2.4900}, {50.0, 0.0009, -2.4900}, 4.8045},
                          {{50.0, 2.5, 0.0}, {50.0, 0.0, -2.5}, 4.3065},
                          {{50.0, 2.5, 0.0}, {73.0, 25.0, -18.0}, 27.1492},
                          {{50.0, 2.5, 0.0}, {58.0, 24.0, 15.0}, 19.4535},
                          {{50.0, 2.5, 0.0}, {50.0, 3.1736, 0.5854}, 1.0000},
                          {{60.2574, -34.0099, 36.2677}, {60.4626, -34.1751, 39.4387}, 1.2644},
                          {{63.0109, -31.0961, -5.8663}, {62.8187, -29.7946, -4.0864}, 1.2630},
                          {{35.0831, -44.1164, 3.7933}, {35.0232, -40.0716, 1.5901}, 1.8645},
                          {{22.7233, 20.0904, -46.6940}, {23.0331, 14.9730, -42.5619}, 2.0373},
                          {{36.4612, 47.8580, 18.3852}, {36.2715, 50.5065, 21.2231}, 1.4146},
                          {{90.8027, -2.0831, 1.4410}, {91.1528, -1.6435, 0.0447}, 1.4441},
                          {{6.7747, -0.2908, -2.4247}, {5.8714, -0.0985, -2.2286}, 0.6377},
                          {{2.0776, 0.0795, -1.1350}, {0.9033, -0.0636, -0.5514}, 0.9082}};
    for (const Pair& pair : pairs) {
        EXPECT_NEAR(delta_e_2000(pair.first, pair.second), pair.wanted, 5e-5);
    }
}

TEST(ColourDifference, IsSymmetricAndZeroForEqualColours) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> values(-80.0, 80.0);
    for (int i = 0; i < 1000; ++i) {
        const Lab a{50.0 + values(random) / 2.0, values(random), values(random)};
        const Lab b{50.0 + values(random) / 2.0, values(random), values(random)};
        EXPECT_NEAR(delta_e_2000(a, b), delta_e_2000(b, a), 1e-9);
        EXPECT_EQ(delta_e_2000(a, a), 0.0);
        EXPECT_GE(delta_e_2000(a, b), 0.0);
    }
}

TEST(Lab, KnowsWhiteBlackAndRed) {
    const Lab white = lab_of({255, 255, 255});
    EXPECT_NEAR(white.l, 100.0, 1e-3);
    EXPECT_NEAR(white.a, 0.0, 1e-2);
    EXPECT_NEAR(white.b, 0.0, 1e-2);
    EXPECT_NEAR(lab_of({0, 0, 0}).l, 0.0, 1e-9);
    // CSS Color 4's red in L*a*b* under D65.
    const Lab red = lab_of({255, 0, 0});
    EXPECT_NEAR(red.l, 53.24, 0.01);
    EXPECT_NEAR(red.a, 80.09, 0.02);
    EXPECT_NEAR(red.b, 67.20, 0.02);
}

}  // namespace
}  // namespace newscaster::forensics
