#include "device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <mutex>
#include <thread>

#include "core/file.h"
#include "device/cuda/cuda_graph.h"
#include "device/cuda/cuda_key_blender.h"
#include "device/cuda/cuda_roi_paster.h"
#include "device/cuda/fusion.h"
#include "device/cuda/onnx_reader.h"
#include "device/graph_cache.h"
#include "newscaster/error.h"

namespace newscaster::device {

namespace cuda {
namespace {

constexpr int kOldestCapability = 75;

std::string version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

constexpr int kBatch = 8;  // fills the GPU; larger batches gain little and delay the first frame

class CudaEvent final : public Event {
  public:
    CudaEvent() {
        cudaEvent_t event = nullptr;
        check(cudaEventCreate(&event), "creating an event");
        event_ = Owned<cudaEvent_t, cudaEventDestroy>(event);
    }
    void synchronize() override { check(cudaEventSynchronize(event_.get()), "waiting"); }
    [[nodiscard]] cudaEvent_t get() const { return event_.get(); }

  private:
    Owned<cudaEvent_t, cudaEventDestroy> event_;
};

class CudaRecording final : public Recording {
  public:
    CudaRecording(int ordinal, OwnedGraphExec graph)
        : ordinal_(ordinal), graph_(std::move(graph)) {}
    void replay(Stream& stream) override {
        const auto* target = dynamic_cast<CudaStream*>(&stream);
        if (target == nullptr || target->ordinal() != ordinal_) {
            throw Error(ErrorCode::runtime,
                        "recording: found another device's stream, wanted a cuda one");
        }
        const DeviceScope scope(ordinal_);
        check(cudaGraphLaunch(graph_.get(), target->get()), "replaying recorded work");
    }

  private:
    int ordinal_;
    OwnedGraphExec graph_;
};

class CudaDevice final : public Device {
  public:
    explicit CudaDevice(const DeviceOptions& options)
        : ordinal_(options.ordinal), log_(options.log), cache_(options.cache_dir, options.log) {
        const DeviceScope scope(ordinal_);
        cudaDeviceProp properties{};
        check(cudaGetDeviceProperties(&properties, ordinal_), "asking for the device's properties");
        capability_ = properties.major * 10 + properties.minor;
        if (capability_ < kOldestCapability) {
            throw Error(
                ErrorCode::device_unavailable,
                fmt::format(
                    "cuda device {}: found {} with compute capability {}.{}, wanted 7.5 or newer",
                    ordinal_, properties.name, properties.major, properties.minor));
        }
        int runtime = 0;
        int driver = 0;
        check(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");
        check(cudaDriverGetVersion(&driver), "asking for the driver's version");
        size_t free_bytes = 0;
        size_t total_bytes = 0;
        check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
        info_.provider = "cuda";
        info_.name = properties.name;
        info_.runtime = fmt::format("CUDA {} (driver for {}), cuDNN {}", version_text(runtime),
                                    version_text(driver), cudnnGetVersion());
        info_.precisions = {Precision::f16, Precision::f32};
        info_.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
        info_.batch = kBatch;
        info_.memory_bytes = free_bytes;
        libraries_ = std::make_shared<Libraries>();
    }

    [[nodiscard]] const DeviceInfo& info() const override { return info_; }

    [[nodiscard]] std::unique_ptr<Stream> make_stream() override {
        return std::make_unique<CudaStream>(ordinal_);
    }

    [[nodiscard]] BufferPtr allocate(TensorInfo info, Location location) override {
        return std::make_shared<CudaBuffer>(ordinal_, std::move(info), location);
    }

    void copy(Buffer& source, Buffer& target, Stream& stream) override {
        if (source.bytes() != target.bytes()) {
            throw Error(ErrorCode::runtime,
                        fmt::format("copy '{}' to '{}': found {} and {} bytes, wanted equal sizes",
                                    source.info().name, target.info().name, source.bytes(),
                                    target.bytes()));
        }
        copy_range(source, 0, target, 0, source.bytes(), stream);
    }

    void copy_range(Buffer& source, size_t source_offset, Buffer& target, size_t target_offset,
                    size_t bytes, Stream& stream) override {
        auto* from = dynamic_cast<CudaBuffer*>(&source);
        auto* to = dynamic_cast<CudaBuffer*>(&target);
        if (from == nullptr || to == nullptr) {
            throw Error(ErrorCode::runtime,
                        "copy: found another device's buffer, wanted cuda ones");
        }
        require_range(source, source_offset, bytes);
        require_range(target, target_offset, bytes);
        const DeviceScope scope(ordinal_);
        check(cudaMemcpyAsync(to->address() + target_offset, from->address() + source_offset, bytes,
                              cudaMemcpyDefault, ours(stream).get()),
              "copying");
    }

    [[nodiscard]] std::unique_ptr<Event> make_event() override {
        const DeviceScope scope(ordinal_);
        return std::make_unique<CudaEvent>();
    }

    void record(Event& event, Stream& stream) override {
        const DeviceScope scope(ordinal_);
        check(cudaEventRecord(ours(event).get(), ours(stream).get()), "recording an event");
    }

    void wait(Stream& stream, Event& event) override {
        const DeviceScope scope(ordinal_);
        check(cudaStreamWaitEvent(ours(stream).get(), ours(event).get(), 0),
              "waiting for an event");
    }

    [[nodiscard]] std::unique_ptr<Recording> make_recording(
        Stream& stream, const std::function<void()>& enqueue) override {
        const DeviceScope scope(ordinal_);
        return std::make_unique<CudaRecording>(ordinal_, captured(ours(stream).get(), enqueue));
    }

    [[nodiscard]] double elapsed_ms(Event& from, Event& to) override {
        const DeviceScope scope(ordinal_);
        float elapsed = 0.0F;
        check(cudaEventElapsedTime(&elapsed, ours(from).get(), ours(to).get()), "reading a time");
        return elapsed;
    }

    [[nodiscard]] std::unique_ptr<RoiPaster> make_roi_paster(const RoiTables& tables) override {
        const DeviceScope scope(ordinal_);
        {
            const std::scoped_lock lock(paste_mutex_);
            if (paste_kernel_ == nullptr) {
                paste_kernel_ = std::make_shared<const RoiPasteKernel>(
                    machine_code(roi_paste_program(), "paste-back"));
            }
        }
        return std::make_unique<CudaRoiPaster>(ordinal_, paste_kernel_, tables);
    }

    [[nodiscard]] std::unique_ptr<KeyBlender> make_key_blender() override {
        const DeviceScope scope(ordinal_);
        return std::make_unique<CudaKeyBlender>(ordinal_,
                                                machine_code(key_blend_program(), "blending"));
    }

    [[nodiscard]] GraphSignature inspect(const std::filesystem::path& onnx_file) override {
        OnnxModel model = read_onnx(onnx_file);
        return {std::move(model.inputs), std::move(model.outputs)};
    }

    [[nodiscard]] std::unique_ptr<Graph> load(const std::filesystem::path& onnx_file,
                                              const std::string& content_hash,
                                              const GraphOptions& options) override {
        static_cast<void>(content_hash);  // the kernels' source is the more exact key
        if (options.precision != Precision::f32 && options.precision != Precision::f16) {
            throw Error(ErrorCode::device_unavailable,
                        fmt::format("cuda: found precision {}, wanted f32 or f16",
                                    name_of(options.precision)));
        }
        const GraphIr graph =
            build_graph(read_onnx(onnx_file), onnx_file.string(), options.input_shapes);
        Plan plan = make_plan(graph, options.precision, capability_);
        const DeviceScope scope(ordinal_);
        const auto code = machine_code(kernel_program(plan), onnx_file.string());
        auto executable = std::make_shared<Executable>(ordinal_, libraries_, std::move(plan), code);
        log_(LogLevel::debug,
             "{}: {} steps, weights {} bytes, scratch {} bytes, workspace {} bytes",
             onnx_file.string(), executable->plan().steps.size(), executable->constant_bytes(),
             executable->plan().arena_bytes, executable->workspace_bytes());
        return std::make_unique<CudaGraph>(std::move(executable));
    }

  private:
    // A default-constructed Event would be another provider's.
    static CudaEvent& ours(Event& event) {
        auto* found = dynamic_cast<CudaEvent*>(&event);
        if (found == nullptr) {
            throw Error(ErrorCode::runtime, "found another device's event, wanted a cuda one");
        }
        return *found;
    }
    static CudaStream& ours(Stream& stream) {
        auto* found = dynamic_cast<CudaStream*>(&stream);
        if (found == nullptr) {
            throw Error(ErrorCode::runtime, "found another device's stream, wanted a cuda one");
        }
        return *found;
    }

    [[nodiscard]] std::vector<std::byte> machine_code(const std::string& source,
                                                      const std::string& origin) const {
        const nlohmann::json description{{"provider", "cuda"},
                                         {"runtime", info_.runtime},
                                         {"capability", capability_},
                                         {"kernels", sha256_hex(source)}};
        if (auto found = cache_.find(description)) return std::move(*found);
        auto code = compile_source(source, origin, capability_);
        cache_.store(description, code);
        return code;
    }

    int ordinal_;
    Log log_;
    GraphCache cache_;
    DeviceInfo info_;
    int capability_ = 0;
    std::shared_ptr<Libraries> libraries_;
    std::mutex paste_mutex_;
    std::shared_ptr<const RoiPasteKernel> paste_kernel_;  // compiled when first asked for
};

}  // namespace
}  // namespace cuda

int cuda_device_count() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        return 0;
    }
    return count;
}

namespace {

// Why there is no GPU, in the driver's words.
std::string reason_of_none() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    static_cast<void>(cudaGetLastError());
    return fmt::format("cuda: found no NVIDIA GPU with a driver ({})",
                       status == cudaSuccess ? "no device" : cudaGetErrorString(status));
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(const DeviceOptions& options) {
    const int count = cuda_device_count();
    if (options.ordinal < 0 || options.ordinal >= count) {
        throw Error(ErrorCode::device_unavailable,
                    count == 0 ? reason_of_none()
                               : fmt::format("cuda: found device {}, wanted 0 to {}",
                                             options.ordinal, count - 1));
    }
    return std::make_unique<cuda::CudaDevice>(options);
}

}  // namespace newscaster::device
