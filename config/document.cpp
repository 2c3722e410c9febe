#include "config/document.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <istream>
#include <map>
#include <streambuf>

namespace lamella::config {
namespace {

/// Ends the reading of a document that breaks a limit, which has been told.
struct too_much {};

/// Builds the tree from parser events. Events never expand aliases, so the work is linear in the
/// text.
class builder : public YAML::EventHandler {
public:
  explicit builder(std::vector<document_problem>& problems) : problems_{problems} {}

  node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { place({}, mark); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    complain(mark, "aliases (*name) are not allowed");
    place({}, mark);
  }

  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    complain(mark, "anchors (&name) are not allowed");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& text) override {
    refuse_tag(mark, tag);
    node x;
    x.type = node::kind::scalar;
    x.text = text;
    place(std::move(x), mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(node::kind::list, mark, tag);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(node::kind::map, mark, tag);
  }
  void OnMapEnd() override { close(); }

private:
  /// A list or map that is being filled; a map alternates between keys and values.
  struct frame {
    node made;
    bool has_key = false;
    std::string key;
    position key_at;
    std::map<std::string, uint32_t> lines; ///< of its keys
  };

  static position place_of(const YAML::Mark& mark) {
    return {static_cast<uint32_t>(mark.line + 1), static_cast<uint32_t>(mark.column + 1)};
  }

  void complain(const YAML::Mark& mark, std::string message) {
    problems_.push_back({place_of(mark), std::move(message)});
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    // The parser writes "?" for no tag and "!" for a quoted scalar.
    if (!tag.empty() && tag != "?" && tag != "!") complain(mark, "tags (!name) are not allowed");
  }

  void open(node::kind type, const YAML::Mark& mark, const std::string& tag) {
    refuse_tag(mark, tag);
    if (frames_.size() >= document_depth_max) {
      complain(mark, "more than " + std::to_string(document_depth_max) + " levels");
      throw too_much{};
    }
    frame x;
    x.made.type = type;
    x.made.at = place_of(mark);
    frames_.push_back(std::move(x));
  }

  void close() {
    auto made = std::move(frames_.back().made);
    frames_.pop_back();
    place_made(std::move(made));
  }

  void place(node x, const YAML::Mark& mark) {
    x.at = place_of(mark);
    place_made(std::move(x));
  }

  void place_made(node x) {
    if (++values_ > document_values_max) {
      problems_.push_back({x.at, "more than " + std::to_string(document_values_max) + " values"});
      throw too_much{};
    }
    if (frames_.empty()) {
      root_ = std::move(x);
      return;
    }
    auto& top = frames_.back();
    if (top.made.type == node::kind::list) {
      top.made.items.push_back(std::move(x));
    } else if (!top.has_key) {
      if (x.type != node::kind::scalar || x.text.empty())
        problems_.push_back({x.at, "a key must be a plain word"});
      const auto [first, fresh] = top.lines.emplace(x.text, x.at.line);
      if (x.type == node::kind::scalar && !fresh)
        problems_.push_back({x.at, "the key " + x.text + " is given twice; first in line "
                                       + std::to_string(first->second)});
      top.key = x.text;
      top.key_at = x.at;
      top.has_key = true;
    } else {
      top.made.pairs.push_back({std::move(top.key), top.key_at, std::move(x)});
      top.has_key = false;
    }
  }

  std::vector<document_problem>& problems_;
  std::vector<frame> frames_;
  int values_ = 0;
  node root_;
};

/// Reads from memory without a copy.
struct view_buffer : std::streambuf {
  explicit view_buffer(std::string_view text) {
    auto* first = const_cast<char*>(text.data()); // only read
    setg(first, first, first + text.size());
  }
};

} // namespace

node parse_document(std::string_view text, std::vector<document_problem>& problems) {
  if (text.size() > document_bytes_max) {
    problems.push_back({{}, "is longer than 1 MiB"});
    return {};
  }
  view_buffer buffer{text};
  std::istream in{&buffer};
  builder built{problems};
  try {
    YAML::Parser parser{in};
    if (!parser.HandleNextDocument(built)) return {};
    auto root = built.take();
    builder second{problems};
    if (parser && parser.HandleNextDocument(second))
      problems.push_back({{}, "has a second document (---); only one is allowed"});
    return root;
  } catch (const too_much&) {
    return {};
  } catch (const YAML::Exception& e) {
    const bool star = e.msg.starts_with(YAML::ErrorMsg::ALIAS_NOT_FOUND)
                      || e.msg.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR);
    const bool tab = text.find('\t') != std::string_view::npos;
    problems.push_back(
        {{static_cast<uint32_t>(e.mark.line + 1), static_cast<uint32_t>(e.mark.column + 1)},
         "is not YAML: " + e.msg
             + (star  ? "; a text that begins with * needs quotes"
                : tab ? "; there are tabs in it, and only spaces can indent"
                      : "")});
    return {};
  }
}

} // namespace lamella::config
