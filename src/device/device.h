// The provider interface: a Device makes Buffers, Streams and Graphs; a Graph makes Sessions.
//
// One folder per provider implements it (openvino/, later cuda/ and tensorrt/); vendor types never
// leave that folder. Memory that one graph writes can be bound as another graph's input, so data
// stays on the device between graphs. All calls throw Error(device_unavailable) when the provider
// or a precision cannot run here, Error(bad_pack) when a graph is invalid, Error(runtime) when
// execution fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "core/tensor.h"

namespace newscaster::device {

enum class Precision { f32, f16, bf16, int8, fp8 };

[[nodiscard]] std::string_view name_of(Precision precision);
[[nodiscard]] Precision precision_from_name(std::string_view name);  // throws Error(bad_input)

// Where a block of memory lives. host and pinned are addressable by the CPU.
enum class Location { host, pinned, device };

struct TensorInfo {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;  // -1: decided when the graph is loaded (GraphOptions::input_shapes)
};

struct DeviceInfo {
    std::string provider;               // "cpu"
    std::string name;                   // "AMD EPYC ..."
    std::string runtime;                // "OpenVINO 2026.4.1"
    std::vector<Precision> precisions;  // that run natively here, best first
    int cores = 1;                      // host threads that make sense
    uint64_t memory_bytes = 0;          // free memory; 0 = not known
};

struct DeviceOptions {
    int threads = 0;                  // host threads for compute; 0 = all cores
    int ordinal = 0;                  // which GPU, for providers that have several
    std::filesystem::path cache_dir;  // compiled graphs; empty = no cache
    Log log;
};

// In-order queue of work. On the CPU work runs inside the call and synchronize() returns at once.
class Stream {
  public:
    virtual ~Stream() = default;
    virtual void synchronize() = 0;
};

// A dense block of memory owned by a device; freed with the last shared_ptr.
// Not synchronised: two sessions may read one buffer at the same time, never write it.
class Buffer {
  public:
    virtual ~Buffer() = default;
    [[nodiscard]] const TensorInfo& info() const { return info_; }
    [[nodiscard]] size_t bytes() const;
    [[nodiscard]] Location location() const { return location_; }
    // CPU address; nullptr when location() is Location::device.
    [[nodiscard]] virtual std::byte* host_data() = 0;

    // Host-addressable f32 elements; throws Error(runtime) for other types and locations.
    [[nodiscard]] std::span<float> host_f32();

  protected:
    Buffer(TensorInfo info, Location location) : info_(std::move(info)), location_(location) {}

  private:
    TensorInfo info_;
    Location location_;
};
using BufferPtr = std::shared_ptr<Buffer>;

// One execution context of a Graph: bindings plus scratch memory. Use from one thread at a time;
// several sessions of one graph run concurrently.
class Session {
  public:
    virtual ~Session() = default;

    // Makes run() read or write this buffer under the tensor's name. Type and shape must equal the
    // graph's. The buffer must belong to the same device.
    virtual void bind(const std::string& tensor, BufferPtr buffer) = 0;

    // The buffer bound under this name; outputs that were never bound get a session-owned one.
    [[nodiscard]] virtual BufferPtr buffer(const std::string& tensor) = 0;

    // Runs once. Every input must be bound. Enqueues on `stream`; the CPU provider blocks.
    virtual void run(Stream& stream) = 0;
};

struct GraphOptions {
    Precision precision = Precision::f32;
    int concurrency = 1;                        // sessions meant to run at the same time
    std::map<std::string, Shape> input_shapes;  // fixes every dynamic extent
};

// A compiled network. Immutable and thread-safe.
class Graph {
  public:
    virtual ~Graph() = default;
    [[nodiscard]] virtual const std::vector<TensorInfo>& inputs() const = 0;
    [[nodiscard]] virtual const std::vector<TensorInfo>& outputs() const = 0;
    [[nodiscard]] virtual std::unique_ptr<Session> make_session() = 0;
};

// Signature of an ONNX file without compiling it (names, types, shapes with -1 for dynamic).
struct GraphSignature {
    std::vector<TensorInfo> inputs;
    std::vector<TensorInfo> outputs;
};

class Device {
  public:
    virtual ~Device() = default;
    [[nodiscard]] virtual const DeviceInfo& info() const = 0;
    [[nodiscard]] virtual std::unique_ptr<Stream> make_stream() = 0;
    // Zero-filled.
    [[nodiscard]] virtual BufferPtr allocate(TensorInfo info, Location location) = 0;
    // Copies all bytes; sizes must be equal. Asynchronous on `stream` where the provider is.
    virtual void copy(Buffer& source, Buffer& target, Stream& stream) = 0;
    [[nodiscard]] virtual GraphSignature inspect(const std::filesystem::path& onnx_file) = 0;
    // `content_hash` (sha256 of the file, from the manifest) keys the compiled-graph cache.
    [[nodiscard]] virtual std::unique_ptr<Graph> load(const std::filesystem::path& onnx_file,
                                                      const std::string& content_hash,
                                                      const GraphOptions& options) = 0;
};

// Providers built into this binary, the one that "auto" takes first: "cpu", and "cuda" in builds
// with NEWSCASTER_CUDA.
[[nodiscard]] std::vector<std::string> provider_names();

// Opens a provider by name. Throws Error(device_unavailable) naming those that exist.
[[nodiscard]] std::unique_ptr<Device> open_device(const std::string& provider,
                                                  const DeviceOptions& options);

// Convenience: a device buffer holding the tensor's values as f32 under `name`.
[[nodiscard]] BufferPtr upload(Device& device, Stream& stream, const std::string& name,
                               const Tensor& tensor);

}  // namespace newscaster::device
