#include "media/read_ahead.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace newscaster::media {

namespace {

class AheadClip final : public ClipSource {
  public:
    AheadClip(std::unique_ptr<ClipSource> clip, size_t pictures)
        : clip_(std::move(clip)),
          most_(pictures),
          reader_([this](const std::stop_token& stop) { fill(stop); }) {}

    std::optional<RgbImage> read() override {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !waiting_.empty() || ended_; });
        if (waiting_.empty()) {
            if (fault_) std::rethrow_exception(fault_);
            return std::nullopt;
        }
        RgbImage picture = std::move(waiting_.front());
        waiting_.pop_front();
        changed_.notify_all();
        return picture;
    }

  private:
    void fill(const std::stop_token& stop) {
        std::exception_ptr fault;
        try {
            while (auto picture = clip_->read()) {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, stop, [this] { return waiting_.size() < most_; });
                if (stop.stop_requested()) return;
                waiting_.push_back(std::move(*picture));
                changed_.notify_all();
            }
        } catch (...) {
            fault = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        fault_ = fault;
        ended_ = true;
        changed_.notify_all();
    }

    std::unique_ptr<ClipSource> clip_;
    const size_t most_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<RgbImage> waiting_;
    std::exception_ptr fault_;
    bool ended_ = false;
    std::jthread reader_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<ClipSource> read_ahead(std::unique_ptr<ClipSource> clip, size_t pictures) {
    return std::make_unique<AheadClip>(std::move(clip), pictures);
}

}  // namespace newscaster::media
