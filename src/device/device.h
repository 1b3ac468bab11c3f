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
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "core/roi_tables.h"
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
    int batch = 1;                      // frames that one run of a renderer's graph should draw
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

// A point in a stream: see Device::record. On the CPU it has always passed.
class Event {
  public:
    virtual ~Event() = default;
    // Returns when the work enqueued before the last record is done.
    virtual void synchronize() {}
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

    // Does now what the first run() would do besides running. Every input must be bound.
    virtual void prepare() {}
};

struct GraphOptions {
    Precision precision = Precision::f32;
    int concurrency = 1;                        // sessions meant to run at the same time
    std::map<std::string, Shape> input_shapes;  // fixes every dynamic extent
};

// Work that is enqueued as a whole; see Device::make_recording. Use from one thread at a time.
class Recording {
  public:
    virtual ~Recording() = default;
    virtual void replay(Stream& stream) = 0;
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

// Draws face crops into the region of interest (ROI) of one canvas picture, as NV12. Immutable;
// safe for several threads, each with its own stream.
class RoiPaster {
  public:
    virtual ~RoiPaster() = default;
    // Entry `index` of crops, planar RGB f32 [n, 3, size, size], into `target` (u8) from byte
    // `offset` on: height rows of luma, height / 2 rows of Cb, Cr pairs, width bytes each. Every
    // byte equals that of the compositor. Enqueues on `stream`.
    virtual void paste(Buffer& crops, int64_t index, Buffer& target, size_t offset,
                       Stream& stream) const = 0;
};

class KeyBlender;  // device/key_blender.h

class Device {
  public:
    virtual ~Device() = default;
    [[nodiscard]] virtual const DeviceInfo& info() const = 0;
    [[nodiscard]] virtual std::unique_ptr<Stream> make_stream() = 0;
    // Zero-filled.
    [[nodiscard]] virtual BufferPtr allocate(TensorInfo info, Location location) = 0;
    // Copies all bytes; sizes must be equal. Asynchronous on `stream` where the provider is.
    virtual void copy(Buffer& source, Buffer& target, Stream& stream) = 0;
    // The same for `bytes` bytes from `source_offset` to `target_offset`, both within the buffers.
    virtual void copy_range(Buffer& source, size_t source_offset, Buffer& target,
                            size_t target_offset, size_t bytes, Stream& stream);

    // Order between streams. Until the first record an event counts as passed. The defaults are
    // those of a provider whose work runs inside the call.
    [[nodiscard]] virtual std::unique_ptr<Event> make_event();
    virtual void record(Event& event, Stream& stream);
    virtual void wait(Stream& stream, Event& event);
    // What `enqueue` enqueues on `stream`, without running it: sessions, copies between device
    // buffers, blending. They must outlive the recording. The default calls `enqueue` anew for
    // every replay, as fits a provider whose work runs inside the call.
    [[nodiscard]] virtual std::unique_ptr<Recording> make_recording(
        Stream& stream, const std::function<void()>& enqueue);

    // Milliseconds of device time between two events that have passed; 0 where work has no clock
    // of its own.
    [[nodiscard]] virtual double elapsed_ms(Event& from, Event& to);

    // Paste-back on the device; nullptr where the provider has none (the compositor does it then).
    [[nodiscard]] virtual std::unique_ptr<RoiPaster> make_roi_paster(const RoiTables& tables);

    // Frames in between out of keyframes; nullptr where the provider has none.
    [[nodiscard]] virtual std::unique_ptr<KeyBlender> make_key_blender();

    [[nodiscard]] virtual GraphSignature inspect(const std::filesystem::path& onnx_file) = 0;
    // `content_hash` (sha256 of the file, from the manifest) keys the compiled-graph cache.
    [[nodiscard]] virtual std::unique_ptr<Graph> load(const std::filesystem::path& onnx_file,
                                                      const std::string& content_hash,
                                                      const GraphOptions& options) = 0;
};

// Providers built into this binary, best first: "cuda" in builds with NEWSCASTER_CUDA, "cpu" in
// those with NEWSCASTER_OPENVINO.
[[nodiscard]] std::vector<std::string> provider_names();

// Opens a provider by name; "auto" takes the best that works here and logs why better ones do not.
// Throws Error(device_unavailable) naming those that exist.
[[nodiscard]] std::unique_ptr<Device> open_device(const std::string& provider,
                                                  const DeviceOptions& options);

// Throws Error(runtime) unless the bytes lie within the buffer.
void require_range(const Buffer& buffer, size_t offset, size_t bytes);

// Convenience: a buffer holding the tensor's values as f32 under `name`.
[[nodiscard]] BufferPtr upload(Device& device, Stream& stream, const std::string& name,
                               const Tensor& tensor, Location location = Location::device);

}  // namespace newscaster::device
