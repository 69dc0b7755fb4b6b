#include "spec/words.hpp"

#include <optional>

namespace zed::spec {
namespace {

class Splitter {
public:
  explicit Splitter(std::string_view text) : text_(text) {}

  std::variant<Words, WordsFault> run() {
    while (at_ < text_.size() && !fault_)
      next();
    if (fault_) return *fault_;
    end_word();
    return std::move(result_);
  }

private:
  void next() {
    char c = text_[at_];
    switch (c) {
    case ' ':
    case '\t':
    case '\n': end_word(); break;
    case '\'': return single_quoted();
    case '"': return double_quoted();
    case '\\': return backslash();
    default:
      if (std::string_view("|&;<>$`*").find(c) != std::string_view::npos &&
          result_.shell_character == '\0')
        result_.shell_character = c;
      add(c);
    }
    ++at_;
  }

  void add(char c) {
    if (!word_) word_.emplace();
    *word_ += c;
  }
  void end_word() {
    if (word_) result_.words.push_back(std::move(*word_));
    word_.reset();
  }

  void single_quoted() {
    std::size_t close = text_.find('\'', at_ + 1);
    if (close == std::string_view::npos) {
      fault_ = WordsFault{at_, "a single quote that is not closed"};
      return;
    }
    if (!word_) word_.emplace();
    *word_ += text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
  }

  void double_quoted() {
    std::size_t open = at_++;
    if (!word_) word_.emplace();
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      // Within double quotes a backslash quotes only these (XCU 2.2.3).
      bool quotes = text_[at_] == '\\' && at_ + 1 < text_.size() &&
                    std::string_view("$`\"\\\n").find(text_[at_ + 1]) != std::string_view::npos;
      if (quotes) ++at_;
      if (!(quotes && text_[at_] == '\n')) add(text_[at_]);
    }
    if (at_ >= text_.size())
      fault_ = WordsFault{open, "a double quote that is not closed"};
    else
      ++at_;
  }

  void backslash() {
    if (at_ + 1 >= text_.size()) {
      fault_ = WordsFault{at_, "a backslash with nothing behind it"};
      return;
    }
    if (text_[at_ + 1] != '\n') add(text_[at_ + 1]);
    at_ += 2;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<std::string> word_;
  std::optional<WordsFault> fault_;
  Words result_;
};

}  // namespace

std::variant<Words, WordsFault> split_words(std::string_view text) {
  return Splitter(text).run();
}

}  // namespace zed::spec
