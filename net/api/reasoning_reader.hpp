/// Splits the reasoning off an answer that arrives in pieces.
#pragma once

#include "net/api/channel_reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamella::net {

/// Reads what a grammar allows (model/chat/reasoning.hpp). Forms without marks are
/// those of channel_reader. Marks belong to neither, nor do white
/// space within them and up to two line feeds behind the reasoning. The output depends on the bytes
/// only, not on the pieces in which they arrive.
class reasoning_reader {
public:
  explicit reasoning_reader(model::answer_reasoning what);

  reasoning_piece feed(std::string_view text);
  /// The answer is complete: returns the held-back rest.
  reasoning_piece finish();

  /// Has the reasoning begun, and not ended?
  bool reasons() const {
    return channels_ ? channels_->reasons() : state_ == state::begun || state_ == state::inside;
  }

private:
  enum class state : uint8_t {
    open,   ///< the mark may come
    begun,  ///< white space at most
    inside, ///< reasoning
    behind, ///< line feeds at most
    over    ///< the answer
  };

  bool read_open();
  bool read_inside(reasoning_piece& out);
  bool read_behind();

  std::optional<channel_reader> channels_; ///< reads it all, where the form is of messages
  model::reasoning_marks marks_;
  state state_;
  std::string held_;     ///< not given out yet
  uint32_t skipped_ = 0; ///< line feeds
};

} // namespace lamella::net
