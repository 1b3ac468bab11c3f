# The graph compiler of the cuda provider: plans and the text of kernels. It needs nothing of CUDA,
# so that plans can be looked at, and tested, on any machine.
set(NEWSCASTER_CUDA_COMPILER
  channel_passes.cpp compose_pass.cpp emitter.cpp emitter_moving.cpp emitter_nn.cpp folding.cpp
  fusion.cpp geometry.cpp graph_ir.cpp graph_plan.cpp half_passes.cpp halo_conv.cpp host_eval.cpp
  host_eval_nn.cpp kernel_rows.cpp kernel_source.cpp memory_plan.cpp onnx_reader.cpp pass_util.cpp
  plan.cpp rewriting.cpp shape_inference.cpp)
list(TRANSFORM NEWSCASTER_CUDA_COMPILER PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
set(NEWSCASTER_CUDA_COMPILER_TESTS
  graph_passes_test.cpp memory_plan_test.cpp onnx_reader_test.cpp)
list(TRANSFORM NEWSCASTER_CUDA_COMPILER_TESTS PREPEND "${CMAKE_CURRENT_LIST_DIR}/")

# Kernels written by hand travel as text: NVRTC compiles them at run time.
file(READ "${CMAKE_CURRENT_LIST_DIR}/halo_conv.cuh" NEWSCASTER_HALO_CONV)
file(READ "${CMAKE_CURRENT_LIST_DIR}/key_blend.cuh" NEWSCASTER_KEY_BLEND)
file(READ "${CMAKE_CURRENT_LIST_DIR}/roi_paste.cuh" NEWSCASTER_ROI_PASTE)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             "${CMAKE_CURRENT_LIST_DIR}/halo_conv.cuh" "${CMAKE_CURRENT_LIST_DIR}/key_blend.cuh"
             "${CMAKE_CURRENT_LIST_DIR}/roi_paste.cuh")
set(NEWSCASTER_KERNEL_TEXTS "${CMAKE_CURRENT_BINARY_DIR}/kernel_texts")
configure_file("${CMAKE_CURRENT_LIST_DIR}/kernel_texts.h.in"
               "${NEWSCASTER_KERNEL_TEXTS}/device/cuda/kernel_texts.h" @ONLY)
