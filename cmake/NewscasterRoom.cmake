# Longest a test may take; sanitizers slow it down.
set(NEWSCASTER_TEST_TIMEOUT_S 300)
if(NEWSCASTER_SANITIZE)
  set(NEWSCASTER_TEST_TIMEOUT_S 1500)
endif()

# newscaster_room(<room> SOURCES ... DEPENDS ... [LINK ...] [TESTS ...])
#
# One object library per room, newscaster_<room>, that may include only the rooms in DEPENDS (their
# dependencies come along); and one test program, newscaster_<room>_tests, from TESTS.
function(newscaster_room room)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS;LINK;TESTS" ${ARGN})
  add_library(newscaster_${room} STATIC ${ROOM_SOURCES})
  target_link_libraries(newscaster_${room} PUBLIC newscaster_options)
  foreach(dependency IN LISTS ROOM_DEPENDS)
    target_link_libraries(newscaster_${room} PUBLIC newscaster_${dependency})
  endforeach()
  target_link_libraries(newscaster_${room} PUBLIC ${ROOM_LINK})
  if(NEWSCASTER_BUILD_TESTS AND ROOM_TESTS)
    add_executable(newscaster_${room}_tests ${ROOM_TESTS})
    target_link_libraries(newscaster_${room}_tests PRIVATE newscaster_${room} GTest::gtest_main
                          GTest::gmock)
    target_compile_definitions(newscaster_${room}_tests PRIVATE
      NEWSCASTER_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    gtest_discover_tests(newscaster_${room}_tests TEST_PREFIX "${room}." DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT ${NEWSCASTER_TEST_TIMEOUT_S} LABELS unit)
  endif()
endfunction()
