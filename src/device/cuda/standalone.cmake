# What the cuda provider needs of the top-level build: core, and the device room without OpenVINO.
set(NEWSCASTER_CUDA_ROOT "${CMAKE_CURRENT_SOURCE_DIR}/../../..")
list(APPEND CMAKE_MODULE_PATH "${NEWSCASTER_CUDA_ROOT}/cmake")
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(GTest REQUIRED)
enable_testing()
include(GoogleTest)
include(NewscasterRoom)

add_library(newscaster_options INTERFACE)
target_compile_features(newscaster_options INTERFACE cxx_std_20)
target_compile_options(newscaster_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wno-sign-conversion -ffp-contract=off)
target_include_directories(newscaster_options INTERFACE
  "${NEWSCASTER_CUDA_ROOT}/include" "${NEWSCASTER_CUDA_ROOT}/src")

set(NEWSCASTER_BUILD_TESTS OFF)  # the rooms' own tests belong to the full build
add_subdirectory("${NEWSCASTER_CUDA_ROOT}/src/core" core)
include("${CMAKE_CURRENT_LIST_DIR}/compiler.cmake")
newscaster_room(device SOURCES ../device.cpp ../graph_cache.cpp ${NEWSCASTER_CUDA_COMPILER} DEPENDS core)
target_include_directories(newscaster_device PRIVATE "${NEWSCASTER_KERNEL_TEXTS}")
set(NEWSCASTER_BUILD_TESTS ON)
