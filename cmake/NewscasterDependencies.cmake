# Everything from installed packages; nothing is downloaded at configure time.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBAV REQUIRED IMPORTED_TARGET libavformat libavcodec libswscale libavutil)
pkg_check_modules(SOXR REQUIRED IMPORTED_TARGET soxr)

# OpenVINO comes from the PyPI wheel inside the venv (make setup); -DOpenVINO_DIR=... overrides.
if(NEWSCASTER_OPENVINO)
  file(GLOB NEWSCASTER_OPENVINO_HINT
       "${NEWSCASTER_VENV}/lib/python3*/site-packages/openvino/cmake")
  find_package(OpenVINO REQUIRED COMPONENTS Runtime HINTS ${NEWSCASTER_OPENVINO_HINT})
elseif(NEWSCASTER_BUILD_TESTS)
  message(FATAL_ERROR "The tests run on the cpu provider: wanted NEWSCASTER_OPENVINO=ON")
endif()

if(NEWSCASTER_BUILD_TESTS)
  find_package(GTest REQUIRED)
  enable_testing()
  include(GoogleTest)
endif()
if(NEWSCASTER_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()

add_library(newscaster_options INTERFACE)
target_compile_features(newscaster_options INTERFACE cxx_std_20)
# -ffp-contract=off: the same floating-point results with and without FMA hardware.
target_compile_options(newscaster_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wno-sign-conversion -ffp-contract=off)
target_include_directories(newscaster_options INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>)
if(NEWSCASTER_SANITIZE)
  target_compile_options(newscaster_options INTERFACE -fsanitize=${NEWSCASTER_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(newscaster_options INTERFACE -fsanitize=${NEWSCASTER_SANITIZE})
endif()
