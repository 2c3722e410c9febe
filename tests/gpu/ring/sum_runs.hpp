/// Sums over ranks as works of their own, for tests of groups.
#pragma once

#include "gpu/ring/rank_group.hpp"

#include <future>
#include <memory>
#include <vector>

namespace lamella::test {

/// One rank's part of some sums, one after another.
class sum_work final : public gpu::work {
public:
  static constexpr uint32_t width = 24;

  sum_work(std::shared_ptr<const gpu::rank_group> group, std::vector<std::vector<float>> parts,
           gpu::frame_tag tag)
      : group_{std::move(group)}, parts_{std::move(parts)}, tag_{tag} {}

  progress advance(gpu::kernel_context context) override {
    tag_.layer = next_;
    auto& x = parts_[next_];
    if (!group_->sums->all_reduce({tag_, x.data(), static_cast<uint32_t>(x.size() / width), width},
                                  context))
      return progress::blocked;
    return ++next_ == parts_.size() ? progress::done : progress::advanced;
  }

  const std::vector<std::vector<float>>& sums() const { return parts_; }

private:
  std::shared_ptr<const gpu::rank_group> group_;
  std::vector<std::vector<float>> parts_;
  gpu::frame_tag tag_;
  uint32_t next_ = 0;
};

/// Launches and tells how it ended.
inline std::future<gpu::work_status> run_on(gpu::stream& stream, std::shared_ptr<gpu::work> x,
                                            std::chrono::milliseconds timeout) {
  auto end = std::make_shared<std::promise<gpu::work_status>>();
  stream.launch(std::move(x), gpu::clock::now() + timeout,
                [end](gpu::work_status status) { end->set_value(status); });
  return end->get_future();
}

/// The parts added in ascending order of the ranks.
inline std::vector<float> in_order(const std::vector<std::vector<float>>& parts) {
  auto sum = parts[0];
  for (size_t r = 1; r < parts.size(); ++r)
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += parts[r][i];
  return sum;
}

} // namespace lamella::test
