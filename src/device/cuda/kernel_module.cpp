#include "device/cuda/kernel_module.h"

#include <fmt/format.h>
#include <nvrtc.h>

#include <array>

#include "device/cuda/fusion.h"
#include "device/cuda/halo_conv.h"
#include "newscaster/error.h"

namespace newscaster::device::cuda {

namespace {

void check_nvrtc(nvrtcResult status, const char* what) {
    if (status == NVRTC_SUCCESS) return;
    throw Error(ErrorCode::runtime,
                fmt::format("nvrtc: {}: {}", what, nvrtcGetErrorString(status)));
}

nvrtcResult destroy_program(nvrtcProgram program) {
    return nvrtcDestroyProgram(&program);
}
using OwnedProgram = Owned<nvrtcProgram, destroy_program>;

std::string first_error(nvrtcProgram program) {
    size_t size = 0;
    check_nvrtc(nvrtcGetProgramLogSize(program, &size), "log size");
    std::string log(size, '\0');
    check_nvrtc(nvrtcGetProgramLog(program, log.data()), "log");
    const size_t at = log.find("error");
    const size_t start = at == std::string::npos ? 0 : at;
    return log.substr(start, log.find('\n', start) - start);
}

}  // namespace

std::string kernel_program(const Plan& plan) {
    std::string source = kernel_prelude() + halo_prelude(plan);
    for (const auto& step : plan.steps) {
        if (const auto* kernel = std::get_if<KernelStep>(&step.work)) source += kernel->source;
    }
    return source;
}

std::vector<std::byte> compile_kernels(const Plan& plan, int capability) {
    return compile_source(kernel_program(plan), plan.graph.origin, capability);
}

std::vector<std::byte> compile_source(const std::string& source, const std::string& origin,
                                      int capability) {
    nvrtcProgram created = nullptr;
    check_nvrtc(
        nvrtcCreateProgram(&created, source.c_str(), "newscaster_kernels.cu", 0, nullptr, nullptr),
        "creating a program");
    const OwnedProgram program(created);
    // The features of 9.0 that no later GPU has are only in 9.0a.
    const std::string architecture = fmt::format("--gpu-architecture=sm_{}{}", capability,
                                                 capability == kHaloCapability ? "a" : "");
    const std::array<const char*, 3> options{architecture.c_str(), "--std=c++17", "-w"};
    if (nvrtcCompileProgram(program.get(), static_cast<int>(options.size()), options.data()) !=
        NVRTC_SUCCESS) {
        throw Error(ErrorCode::runtime, fmt::format("{}: a generated kernel does not compile: {}",
                                                    origin, first_error(program.get())));
    }
    size_t size = 0;
    check_nvrtc(nvrtcGetCUBINSize(program.get(), &size), "size of the machine code");
    std::vector<std::byte> code(size);
    check_nvrtc(nvrtcGetCUBIN(program.get(), reinterpret_cast<char*>(code.data())), "machine code");
    return code;
}

KernelModule::KernelModule(const std::vector<std::byte>& code, const Plan& plan) {
    cudaLibrary_t library = nullptr;
    check(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "loading the generated kernels");
    library_ = OwnedLibrary(library);
    for (const auto& step : plan.steps) {
        const auto* kernel = std::get_if<KernelStep>(&step.work);
        if (kernel == nullptr) continue;
        cudaKernel_t handle = nullptr;
        check(cudaLibraryGetKernel(&handle, library, kernel->name.c_str()),
              "finding a generated kernel");
        if (kernel->shared_bytes > 0) {
            check(cudaFuncSetAttribute(reinterpret_cast<const void*>(handle),
                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(kernel->shared_bytes)),
                  "asking for shared memory");
        }
        kernels_[kernel->name] = handle;
    }
}

}  // namespace newscaster::device::cuda
