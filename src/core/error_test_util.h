// For tests: the error that an action is expected to throw.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "newscaster/error.h"

namespace newscaster::testing_support {

// Message of the Error that `action` throws, one line; fails the test when it throws none or
// another code.
inline std::string error_of(const std::function<void()>& action,
                            ErrorCode code = ErrorCode::bad_pack) {
    try {
        action();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
}

}  // namespace newscaster::testing_support
