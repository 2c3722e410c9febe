// Chat completions and completions: what both routes share in the order of their events.
#include "net/api/answer_writer.hpp"

namespace lamella::net {

namespace {

class completion_writer final : public answer_writer {
public:
  completion_writer(stream_chunks::style style, response_head head, bool include_usage,
                    bool continuous)
      : chat_{style == stream_chunks::style::chat}, include_usage_{include_usage}, head_{head},
        chunks_{style, std::move(head), include_usage, continuous} {}

  std::string body(std::span<const response_choice> choices, const usage_counts& usage,
                   const response_metrics* metrics) override {
    return chat_ ? chat_body(head_, choices, usage, metrics)
                 : completion_body(head_, choices, usage, metrics);
  }

  std::string begin(uint32_t index, const usage_counts& running) override {
    return chat_ ? sse_event(chunks_.role(index, running)) : std::string{};
  }
  std::string text(uint32_t index, std::string_view piece,
                   const std::vector<token_logprobs>* logprobs,
                   const usage_counts& running) override {
    return sse_event(chunks_.text(index, piece, logprobs, running));
  }
  std::string reasoning(uint32_t index, std::string_view piece,
                        const std::vector<token_logprobs>* logprobs,
                        const usage_counts& running) override {
    return sse_event(chunks_.reasoning(index, piece, logprobs, running));
  }
  std::string call(uint32_t index, uint32_t call, std::string_view id, std::string_view name,
                   const usage_counts& running) override {
    return sse_event(chunks_.call(index, call, id, name, running));
  }
  std::string arguments(uint32_t index, uint32_t call, std::string_view piece,
                        const std::vector<token_logprobs>* logprobs,
                        const usage_counts& running) override {
    return sse_event(chunks_.arguments(index, call, piece, logprobs, running));
  }
  std::string finish(uint32_t index, finish_reason reason, const stop_reason& stopped_by,
                     const usage_counts& running) override {
    return sse_event(chunks_.finish(index, reason, stopped_by, running));
  }
  std::string end(const usage_counts& total) override {
    std::string out;
    if (include_usage_) out = sse_event(chunks_.usage(total));
    return out.append(sse_done);
  }
  std::string error(const api_error& error, std::string_view request_id) override {
    return sse_event(error_body(error, request_id));
  }

private:
  bool chat_, include_usage_;
  response_head head_;
  stream_chunks chunks_;
};

} // namespace

std::shared_ptr<answer_writer> make_completion_writer(stream_chunks::style style,
                                                      response_head head, bool include_usage,
                                                      bool continuous) {
  return std::make_shared<completion_writer>(style, std::move(head), include_usage, continuous);
}

} // namespace lamella::net
