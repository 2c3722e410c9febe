#include "gpu/cuda/operators/nccl_collective.hpp"

#include "gpu/cuda/driver/memory.hpp"
#include "gpu/cuda/driver/queue.hpp"

#include <atomic>
#include <mutex>

namespace lamella::gpu::cuda {

namespace {

void require(const nccl_library& library, int code, const char* what) {
  if (code != nccl_success) throw nccl_error{library, code, what};
}

class nccl_collective final : public collective,
                              public std::enable_shared_from_this<nccl_collective> {
public:
  nccl_collective(const nccl_library& library, nccl_communicator* comm, uint32_t ranks,
                  const operators& ops)
      : library_{library}, comm_{comm}, ranks_{ranks}, ops_{ops} {}

  ~nccl_collective() override {
    if (comm_ != nullptr) library_.comm_destroy(comm_);
  }

  bool all_reduce(const sum_args& args, kernel_context context) override {
    if (args.rows == 0) return true;
    const auto count = size_t{args.rows} * args.width;
    auto* parts = context.scratch.allocate<float>(ranks_ * count);
    gather(args.x, parts, count, queue::current());
    const auto* sum = parts;
    for (uint32_t r = 1; r < ranks_; ++r) {
      ops_.add({sum, parts + r * count, args.rows, args.width, args.x}, context);
      sum = args.x;
    }
    return true;
  }

  /// To the other ranks; what NCCL makes of it on the way is its own.
  uint64_t bytes_sent() const override { return bytes_sent_.load(std::memory_order_relaxed); }

  void end(channel_state why) override {
    std::lock_guard lock{mutex_};
    if (state_ != channel_state::open) return;
    state_ = why;
    library_.comm_abort(comm_);
    comm_ = nullptr;
  }

  /// In the order of a stream of its own device, before any launch.
  void connect(const float* from, float* to, cudaStream_t on) {
    require(library_, library_.all_gather(from, to, 1, nccl_float32, comm_, on), "ncclAllGather");
  }

private:
  void gather(const float* from, float* to, size_t count, queue& q) {
    q.ends_with_waits(weak_from_this());
    const auto on = q.stream("gathering of parts");
    std::lock_guard lock{mutex_};
    if (state_ != channel_state::open) throw channel_ended{state_};
    require(library_, library_.all_gather(from, to, count, nccl_float32, comm_, on),
            "ncclAllGather");
    bytes_sent_.fetch_add((ranks_ - 1) * count * sizeof(float), std::memory_order_relaxed);
  }

  const nccl_library& library_;
  std::mutex mutex_; ///< of the communicator: NCCL wants one call at a time
  nccl_communicator* comm_;
  channel_state state_ = channel_state::open;
  uint32_t ranks_;
  const operators& ops_;
  std::atomic<uint64_t> bytes_sent_{0};
};

/// A stream that lives as long as this.
struct passing_stream {
  explicit passing_stream(int of) : device{of} {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~passing_stream() { cudaStreamDestroy(handle); }
  passing_stream(const passing_stream&) = delete;
  passing_stream& operator=(const passing_stream&) = delete;
  int device;
  cudaStream_t handle = nullptr;
};

} // namespace

std::vector<std::shared_ptr<collective>> make_nccl_collectives(const nccl_library& library,
                                                               std::span<const int> devices,
                                                               const operators& ops) {
  const auto ranks = static_cast<uint32_t>(devices.size());
  std::vector<nccl_communicator*> comms(ranks);
  require(library, library.comm_init_all(comms.data(), static_cast<int>(ranks), devices.data()),
          "ncclCommInitAll");
  std::vector<std::shared_ptr<nccl_collective>> ends;
  for (auto* comm : comms)
    ends.push_back(std::make_shared<nccl_collective>(library, comm, ranks, ops));
  // The first call of every rank connects it to the others and waits for theirs.
  std::vector<std::unique_ptr<passing_stream>> streams;
  std::vector<std::shared_ptr<std::byte>> places;
  for (const auto device : devices) {
    streams.push_back(std::make_unique<passing_stream>(device));
    places.push_back(device_memory((ranks + 1) * sizeof(float)));
  }
  require(library, library.group_start(), "ncclGroupStart");
  for (uint32_t r = 0; r < ranks; ++r) {
    auto* place = reinterpret_cast<float*>(places[r].get());
    ends[r]->connect(place, place + 1, streams[r]->handle);
  }
  require(library, library.group_end(), "ncclGroupEnd");
  for (const auto& stream : streams) {
    check(cudaSetDevice(stream->device), "cudaSetDevice");
    check(cudaStreamSynchronize(stream->handle), "first use of NCCL");
  }
  return {ends.begin(), ends.end()};
}

} // namespace lamella::gpu::cuda
