// newscaster pack plan: what a GPU would run, on a machine without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/program.h"

namespace newscaster::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json plan(const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"pack", "plan", "studio", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto result = newscaster(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
}

const json& graph_of(const json& plans, const std::string& role) {
    const auto found = std::find_if(plans.begin(), plans.end(),
                                    [&](const json& graph) { return graph.at("role") == role; });
    EXPECT_NE(found, plans.end()) << role;
    return *found;
}

TEST(PackPlan, HasEveryGraphAndSharesMemory) {
    const json plans = plan({});
    EXPECT_GE(plans.size(), 4U);
    for (const json& graph : plans) {
        EXPECT_FALSE(graph.at("steps").empty()) << graph.at("role");
        EXPECT_LE(graph.at("scratch_bytes"), graph.at("scratch_bytes_unshared"));
    }
    const json& decoder = graph_of(plans, "decoder");
    EXPECT_LT(decoder.at("scratch_bytes").get<int64_t>() * 2,
              decoder.at("scratch_bytes_unshared").get<int64_t>());
}

TEST(PackPlan, FollowsBatchPrecisionAndDevice) {
    const json one = graph_of(plan({"--batch-size", "1"}), "decoder");
    const json eight = graph_of(plan({"--batch-size", "8"}), "decoder");
    EXPECT_GT(eight.at("scratch_bytes").get<int64_t>(), 4 * one.at("scratch_bytes").get<int64_t>());
    const auto kinds = [](const json& graph, const std::string& kind) {
        return std::ranges::count_if(graph.at("steps"),
                                     [&](const json& step) { return step.at("kind") == kind; });
    };
    // With f32 no library's tensor cores round anything.
    EXPECT_EQ(kinds(graph_of(plan({"--precision", "f32"}), "decoder"), "cudnn"), 0);
    EXPECT_EQ(kinds(graph_of(plan({"--capability", "8.6"}), "decoder"), "tensor core"), 0);
}

TEST(PackPlan, SaysWhatItWants) {
    struct Wrong {
        std::vector<std::string> options;
        const char* text;
    };
    for (const Wrong& wrong :
         {Wrong{{"--capability", "9.9"}, "9.9"}, Wrong{{"--precision", "f8"}, "f8"},
          Wrong{{"--batch-size", "0"}, "batch"}, Wrong{{"--provider", "cpu"}, "--provider"}}) {
        std::vector<std::string> arguments{"pack", "plan"};
        arguments.insert(arguments.end(), wrong.options.begin(), wrong.options.end());
        const auto result = newscaster(arguments);
        EXPECT_EQ(result.exit_code, 2);
        EXPECT_THAT(result.err, HasSubstr(wrong.text));
    }
}

}  // namespace
}  // namespace newscaster::e2e
