#include "spec/parse.hpp"

#include <charconv>
#include <string>

#include "base/text.hpp"
#include "spec/cluster_file.hpp"
#include "spec/verbs.hpp"

namespace zed::spec {

std::size_t Call::first_keyword() const {
  std::size_t i = 0;
  while (i < arguments.size() && !arguments[i].key)
    ++i;
  return i;
}

namespace {

using Kind = Token::Kind;

/// Comments and line ends between two things.
struct Trivia {
  std::vector<Comment> comments;
  std::string trailing;       ///< on the line of what came before
  bool blank_before = false;  ///< the last thing is followed by a blank line
  bool line_ended = false;    ///< by a newline or a `;`
};

class Parser {
public:
  Parser(const Source& source, Report& report)
      : source_(source), report_(report), lexed_(lex(source.text())), tokens_(lexed_.tokens) {}

  Parsed run() {
    Parsed parsed;
    parse_calls(parsed.file, Kind::end_of_file);
    if (lexed_.cut && !cut_reported_) report(lexed_.faults.rbegin()->second);
    parsed.structure_known = structure_known_ && !lexed_.cut;
    return parsed;
  }

private:
  // --- tokens
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& take() {
    const Token& token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool is(Kind kind) const { return peek().kind == kind; }
  std::string_view text_of(const Token& token) const {
    return std::string_view(source_.text()).substr(token.offset, token.length);
  }
  std::string shown(const Token& token) const {
    switch (token.kind) {
    case Kind::end_of_file: return "the end of the file";
    case Kind::newline: return "the end of the line";
    default: return quote(text_of(token));
    }
  }

  // --- faults
  bool refuse(std::size_t offset, std::string message, std::string hint = {}) {
    report_.error(offset, std::move(message), std::move(hint));
    return false;
  }
  /// The token's own fault if it has one, else what was expected instead of it.
  bool unexpected(const Token& token, std::string expected, std::string hint = {}) {
    if (report_fault_of(token)) return false;
    // The file's end says nothing: its reason has been or will be reported.
    if (token.kind == Kind::end_of_file && lexed_.cut) return false;
    return refuse(token.offset, "expected " + expected + ", got " + shown(token), std::move(hint));
  }
  void report(const Fault& fault) { report_.error(fault.offset, fault.message, fault.hint); }
  bool report_fault_of(const Token& token) {
    auto found = lexed_.faults.find(token.offset);
    if (found == lexed_.faults.end()) return false;
    report(found->second);
    if (lexed_.cut && token.offset == lexed_.faults.rbegin()->first) cut_reported_ = true;
    return true;
  }

  // --- trivia
  /// Takes newlines and comments; semicolons too where statements are separated.
  Trivia take_trivia(bool between_statements) {
    Trivia trivia;
    std::size_t newlines = 0;
    std::size_t semicolons = 0;
    bool first_line = at_ > 0;  // nothing stands before the file's first comment
    for (;; take()) {
      if (is(Kind::newline)) {
        ++newlines;
        trivia.line_ended = true;
        first_line = false;
      } else if (is(Kind::comment)) {
        if (first_line)
          trivia.trailing = text_of(peek());
        else
          trivia.comments.push_back({std::string(text_of(peek())), newlines > 1});
        newlines = 0;
      } else if (between_statements && is(Kind::semicolon)) {
        trivia.line_ended = true;
        if (++semicolons == 2) refuse(peek().offset, "a second `;`", "remove it");
      } else {
        trivia.blank_before = newlines > 1;
        return trivia;
      }
    }
  }

  // --- statements
  /// Fills `block` up to the closing token, which stays.
  void parse_calls(Block& block, Kind closing) {
    Trivia trivia = take_trivia(true);
    block.trailing = trivia.trailing;
    while (!is(closing) && !is(Kind::end_of_file)) {
      if (is(Kind::end_)) {
        if (!stray_end(closing)) break;
        trivia = take_trivia(true);
        continue;
      }
      if (report_.full()) return give_up();
      std::size_t before = at_;
      Call call;
      call.comments = std::move(trivia.comments);
      call.blank_before = trivia.blank_before;
      note_indentation(block);
      bool whole = parse_call(call, closing) && statement_ends(closing);
      if (!whole) recover(call, closing);
      if (at_ == before) take();
      trivia = take_trivia(true);
      call.trailing = trivia.trailing;
      if (!call.name.empty()) block.calls.push_back(std::move(call));
    }
    block.dangling = std::move(trivia.comments);
  }

  /// The rest of the file is not looked at.
  void give_up() {
    at_ = tokens_.size() - 1;
    structure_known_ = false;
  }

  /// An `end` where none is open at this level. True if it was reported and dropped.
  bool stray_end(Kind closing) {
    if (closing != Kind::end_of_file) return false;
    std::string hint = "remove it, or look for a missing `do` above";
    if (lacks_do_)
      hint = "by the indentation, a `do` is missing on line " +
             std::to_string(source_.line(*lacks_do_));
    if (!lexed_.swallowed_do) refuse(peek().offset, "this `end` closes nothing", hint);
    structure_known_ = false;
    take();
    return true;
  }

  bool statement_ends(Kind closing) {
    if (is(Kind::newline) || is(Kind::semicolon) || is(Kind::comment) || is(Kind::end_of_file) ||
        is(closing))
      return true;
    return unexpected(peek(), "the end of the line",
                      is(Kind::do_) ? "" : "separate arguments by commas");
  }

  bool parse_call(Call& call, Kind closing) {
    return parse_head(call, closing) && parse_block(call);
  }

  /// Verb and arguments.
  bool parse_head(Call& call, Kind closing) {
    const Token& verb = peek();
    if (verb.kind != Kind::word && verb.kind != Kind::attribute)
      return unexpected(verb, "a verb", hint_for_no_verb(verb));
    take();
    call.name = text_of(verb);
    call.offset = verb.offset;
    if (is_code_form(call.name))
      return refuse(verb.offset,
                    quote(call.name) + " is not allowed: a cluster file is data, not a program");
    if (call.name == "after" && closing == Kind::close_paren)
      return refuse(verb.offset, "`after` inside `do: (…)` means something else to Elixir",
                    "use `do … end`");
    // `after` opens a section of a block in Elixir: `mix format` moves its argument to a new line.
    if (call.name == "after" && after_goes_on()) pending_ = take_trivia(false).comments;
    return parse_arguments(call);
  }

  std::string hint_for_no_verb(const Token& token) const {
    if (token.kind == Kind::key)
      return "a line starts with a verb; `key: value` follows one, after a comma";
    if (token.kind == Kind::do_) return "`do` stands on the line of its verb";
    std::string word = lower(text_of(token));
    if (token.kind == Kind::alias && !places_of(word).empty()) return "write `" + word + "`";
    return {};
  }

  bool after_goes_on() const {
    std::size_t ahead = 0;
    while (peek(ahead).kind == Kind::newline || peek(ahead).kind == Kind::comment)
      ++ahead;
    Kind kind = peek(ahead).kind;
    return ahead > 0 &&
           (kind == Kind::atom || kind == Kind::quoted_atom || kind == Kind::open_list);
  }

  bool starts_value(Kind kind) const {
    switch (kind) {
    case Kind::newline:
    case Kind::semicolon:
    case Kind::comment:
    case Kind::do_:
    case Kind::end_:
    case Kind::close_paren:
    case Kind::close_list:
    case Kind::close_other:
    case Kind::comma:
    case Kind::end_of_file: return false;
    default: return true;
    }
  }

  bool parse_arguments(Call& call) {
    if (is(Kind::open_paren) && !peek().space_before) return parse_parenthesised(call);
    if (is(Kind::open_paren))
      return refuse(peek().offset, "a space between `" + call.name + "` and its parenthesis",
                    "write " + quote(call.name + "(") + ", or leave out the parentheses");
    if (is(Kind::comma)) return unexpected(peek(), "an argument of `" + call.name + "`");
    if (!starts_value(peek().kind)) return true;
    for (;;) {
      if (!parse_argument(call)) return false;
      if (call.block || !is(Kind::comma)) break;
      std::size_t comma = take().offset;
      if (!next_argument(call.arguments)) return false;
      if (is(Kind::word) && tokens_[at_ - 1].kind == Kind::newline) {
        back_to_line_end();
        return refuse(comma, "nothing follows this comma", "remove it, or add an argument");
      }
    }
    // A comment before the first argument cannot stay there: the line would end at it.
    if (!call.arguments.empty()) {
      lift_comments(call, std::move(call.arguments.front().comments));
      call.arguments.front().comments.clear();
    }
    return flatten(call);
  }

  bool parse_parenthesised(Call& call) {
    Nesting nesting(*this);
    if (!nesting.legal) return false;
    std::size_t open = take().offset;
    Trivia trivia = take_trivia(false);
    pending_ = std::move(trivia.comments);
    if (!trivia.trailing.empty()) pending_.insert(pending_.begin(), {trivia.trailing, false});
    while (!is(Kind::close_paren)) {
      if (!parse_argument(call)) return false;
      Trivia behind = take_trivia(false);
      if (is(Kind::comma)) {
        if (behind.line_ended) return refuse(peek().offset, "a line must not start with a comma");
        take();
        if (!next_argument(call.arguments)) return false;
        if (is(Kind::close_paren) && !call.arguments.empty() && !call.arguments.back().key)
          return refuse(peek().offset, "expected an argument after the comma, got `)`");
        continue;
      }
      keep_comments(call.arguments, behind);
      if (!is(Kind::close_paren)) return not_closed(open, "(", ")");
    }
    take();
    // Parentheses go away in the canonical form, and with them the lines for these comments.
    lift_comments(call);
    return flatten(call);
  }

  bool not_closed(std::size_t open, std::string_view opening, std::string_view closing) {
    const Token& token = peek();
    if (lexed_.faults.count(token.offset) > 0) return report_fault_of(token) && false;
    if (token.kind == Kind::end_of_file && lexed_.cut) return false;
    bool lost = token.kind == Kind::end_of_file || token.kind == Kind::end_ ||
                token.kind == Kind::word || token.kind == Kind::do_;
    if (lost) {
      back_to_line_end();
      return refuse(open, quote(opening) + " is not closed", "add " + quote(closing));
    }
    return unexpected(token, "`,` or " + quote(closing));
  }

  /// The line that follows is a statement of its own, not part of the faulty one.
  void back_to_line_end() {
    while (at_ > 0 &&
           (tokens_[at_ - 1].kind == Kind::newline || tokens_[at_ - 1].kind == Kind::comment))
      --at_;
  }

  /// After a comma: comments of the last argument and of the next.
  bool next_argument(std::vector<Argument>& arguments) {
    Trivia trivia = take_trivia(false);
    keep_comments(arguments, trivia);
    if (starts_value(peek().kind) || is(Kind::close_list) || is(Kind::close_paren)) return true;
    return unexpected(peek(), "a value after the comma");
  }
  void keep_comments(std::vector<Argument>& arguments, Trivia& trivia) {
    if (!trivia.trailing.empty()) {
      if (!arguments.empty() && arguments.back().trailing.empty())
        arguments.back().trailing = std::move(trivia.trailing);
      else
        pending_.push_back({std::move(trivia.trailing), false});
    }
    for (Comment& comment : trivia.comments)
      pending_.push_back(std::move(comment));
  }

  static void lift_comments(Call& call, std::vector<Comment>&& comments) {
    for (Comment& comment : comments)
      call.comments.push_back(std::move(comment));
  }
  void lift_comments(Call& call) {
    if (!call.arguments.empty()) {
      lift_comments(call, std::move(call.arguments.front().comments));
      call.arguments.front().comments.clear();
      std::string& trailing = call.arguments.back().trailing;
      if (!trailing.empty()) call.comments.push_back({std::move(trailing), false});
      trailing.clear();
    }
    lift_comments(call, std::move(pending_));
    pending_.clear();
  }

  /// A keyword list in brackets as the last argument is the same as one without.
  bool flatten(Call& call) {
    if (call.arguments.empty() || call.arguments.back().key) return true;
    Expression& last = call.arguments.back().value;
    if (last.kind != Expression::Kind::list || last.items.empty() || !last.items.front().key)
      return true;
    Argument argument = std::move(call.arguments.back());
    call.arguments.pop_back();
    lift_comments(call, std::move(argument.value.dangling));
    if (!argument.trailing.empty()) call.comments.push_back({argument.trailing, false});
    argument.value.items.front().comments.insert(argument.value.items.front().comments.begin(),
                                                 argument.comments.begin(),
                                                 argument.comments.end());
    for (Argument& item : argument.value.items)
      call.arguments.push_back(std::move(item));
    if (call.arguments.size() == argument.value.items.size()) {
      lift_comments(call, std::move(call.arguments.front().comments));
      call.arguments.front().comments.clear();
    }
    std::string& trailing = call.arguments.back().trailing;
    if (!trailing.empty()) call.comments.push_back({std::move(trailing), false});
    trailing.clear();
    return true;
  }

  /// One argument; `do: …` becomes the call's block.
  bool parse_argument(Call& call) {
    if (is(Kind::key) && text_of(peek()) == "do:") return parse_one_liner(call);
    Argument argument;
    if (!parse_item(argument)) return false;
    if (!argument.key && !call.arguments.empty() && call.arguments.back().key)
      return refuse(argument.offset(),
                    "a value without a key after `" + *call.arguments.back().key + ":`",
                    "keywords come last");
    call.arguments.push_back(std::move(argument));
    return true;
  }

  bool parse_one_liner(Call& call) {
    Nesting nesting(*this);
    if (!nesting.legal) return false;
    Block block;
    block.offset = take().offset;
    // Comments that stand before `do:` have no other place in the canonical form.
    lift_comments(call, std::move(pending_));
    pending_.clear();
    Trivia trivia = take_trivia(false);
    if (!trivia.trailing.empty()) call.comments.push_back({trivia.trailing, false});
    lift_comments(call, std::move(trivia.comments));
    if (is(Kind::open_paren)) {
      std::size_t open = take().offset;
      parse_calls(block, Kind::close_paren);
      if (!is(Kind::close_paren)) return not_closed(open, "(", ")");
      take();
    } else if (is(Kind::literal) && text_of(peek()) == "nil") {
      take();
    } else {
      Call only;
      // A `do … end` behind it would belong to the outer call, as in Elixir.
      if (!parse_head(only, Kind::close_paren)) {
        call.broken = true;
        return false;
      }
      block.calls.push_back(std::move(only));
    }
    call.block = std::move(block);
    if (is(Kind::comma))
      return refuse(peek().offset, "an argument after `do:`", "`do:` comes last");
    return true;
  }

  bool parse_item(Argument& item) {
    item.comments = std::move(pending_);
    pending_.clear();
    if (is(Kind::key) || is(Kind::quoted_key)) {
      if (!parse_key(item)) return false;
      Trivia trivia = take_trivia(false);
      if (!trivia.trailing.empty()) item.comments.push_back({trivia.trailing, false});
      for (Comment& comment : trivia.comments)
        item.comments.push_back(std::move(comment));
      if (trivia.line_ended && (is(Kind::word) || is(Kind::end_))) {
        back_to_line_end();
        return refuse(item.key_offset, "`" + *item.key + ":` has no value");
      }
      if (!starts_value(peek().kind)) return unexpected(peek(), "a value for `" + *item.key + ":`");
    }
    return parse_value(item.value);
  }

  bool parse_key(Argument& item) {
    const Token& token = take();
    item.key_offset = token.offset;
    std::string_view name = text_of(token).substr(0, token.length - 1);
    if (token.kind == Kind::key) {
      item.key = std::string(name);
      return true;
    }
    auto decoded = decode_string(name);
    if (auto* fault = std::get_if<Fault>(&decoded))
      return refuse(token.offset + fault->offset, fault->message, fault->hint);
    item.key = std::get<Decoded>(decoded).text;
    return true;
  }

  // --- values
  bool parse_value(Expression& value) {
    const Token& token = peek();
    value.offset = token.offset;
    value.length = token.length;
    value.raw = text_of(token);
    value.text = value.raw;
    switch (token.kind) {
    case Kind::string: value.kind = Expression::Kind::string; return take_string(value, 0);
    case Kind::heredoc: value.kind = Expression::Kind::heredoc; return take_string(value, 0);
    case Kind::quoted_atom: value.kind = Expression::Kind::atom; return take_string(value, 1);
    case Kind::atom: return take_atom(value, value.raw.substr(1));
    case Kind::literal: return take_atom(value, value.raw);
    case Kind::integer: return take_integer(value);
    case Kind::real: return take_real(value);
    case Kind::alias:
      if (peek(1).kind == Kind::operator_ && text_of(peek(1)) == ".")
        return refuse(token.offset,
                      "calling a function of " + quote(text_of(token)) +
                          " is not allowed: a cluster file is data, not a program",
                      "write the value itself");
      take();
      value.kind = Expression::Kind::alias;
      return true;
    case Kind::open_list: return parse_list(value);
    default: return no_value(token);
    }
  }

  bool no_value(const Token& token) {
    if (token.kind == Kind::word) {
      std::string word(text_of(token));
      const Token& next = peek(1);
      // The sign behind it says more than the word: `x = 1`, `a + b`.
      if (next.kind == Kind::operator_) return report_fault_of(next) && false;
      bool call = next.kind == Kind::open_paren && !next.space_before;
      return refuse(token.offset,
                    call ? "calling a function (" + quote(word) +
                               ") is not allowed: a cluster file "
                               "is data, not a program"
                         : "expected a value, got the bare word " + quote(word),
                    call ? "write the value itself"
                         : "a name is written :" + word + ", a text \"" + word + "\"");
    }
    if (token.kind == Kind::attribute)
      return refuse(token.offset,
                    "module attributes are not allowed here: a cluster file is data, "
                    "not a program",
                    "write the value itself");
    if (token.kind == Kind::open_paren)
      return refuse(token.offset, "parentheses around a value", "leave them out");
    return unexpected(token, "a value");
  }

  bool take_string(Expression& value, std::size_t colon) {
    const Token& token = take();
    std::string_view written = text_of(token).substr(colon);
    bool heredoc = value.kind == Expression::Kind::heredoc;
    auto decoded = heredoc ? decode_heredoc(written) : decode_string(written);
    if (auto* fault = std::get_if<Fault>(&decoded))
      return refuse(token.offset + colon + fault->offset, fault->message, fault->hint);
    if (colon == 1) return finish_atom(value, std::get<Decoded>(decoded).text);
    value.text = std::get<Decoded>(decoded).text;
    value.raw = std::get<Decoded>(decoded).raw;
    return true;
  }

  bool take_atom(Expression& value, std::string name) {
    take();
    return finish_atom(value, std::move(name));
  }

  /// :nil, :true and :false are nil, true and false in Elixir.
  bool finish_atom(Expression& value, std::string name) {
    value.kind = name == "nil"                       ? Expression::Kind::nil
                 : name == "true" || name == "false" ? Expression::Kind::boolean
                                                     : Expression::Kind::atom;
    value.boolean = name == "true";
    if (value.kind != Expression::Kind::atom)
      value.raw = name;
    else if (is_plain_atom(name))
      value.raw = ":" + name;
    value.text = std::move(name);
    return true;
  }

  static std::string without_underscores(std::string_view written) {
    std::string digits;
    for (char c : written)
      if (c != '_') digits += c;
    return digits;
  }

  bool take_integer(Expression& value) {
    std::size_t offset = take().offset;
    value.kind = Expression::Kind::integer;
    value.text = without_underscores(value.raw);
    const char* end = value.text.data() + value.text.size();
    auto [stop, error] = std::from_chars(value.text.data(), end, value.integer);
    if (error != std::errc{} || stop != end)
      return refuse(offset, "the number " + quote(value.raw) + " is too large");
    value.real = static_cast<double>(value.integer);
    return true;
  }

  bool take_real(Expression& value) {
    std::size_t offset = take().offset;
    value.kind = Expression::Kind::real;
    value.text = without_underscores(value.raw);
    const char* end = value.text.data() + value.text.size();
    auto [stop, error] = std::from_chars(value.text.data(), end, value.real);
    if (error != std::errc{} || stop != end)
      return refuse(offset, "the number " + quote(value.raw) + " is out of range");
    return true;
  }

  bool parse_list(Expression& list) {
    Nesting nesting(*this);
    if (!nesting.legal) return false;
    std::size_t open = take().offset;
    list.kind = Expression::Kind::list;
    std::vector<Comment> outer = std::move(pending_);
    Trivia trivia = take_trivia(false);
    pending_.clear();
    keep_comments(list.items, trivia);
    while (!is(Kind::close_list)) {
      if (is(Kind::comma)) return unexpected(peek(), "a value");
      if (!starts_value(peek().kind) || is(Kind::word)) return list_item_missing(open);
      Argument item;
      if (!parse_item(item)) return false;
      if (!item.key && !list.items.empty() && list.items.back().key)
        return refuse(item.offset(),
                      "a value without a key after `" + *list.items.back().key + ":`",
                      "keywords come last");
      list.items.push_back(std::move(item));
      Trivia behind = take_trivia(false);
      if (is(Kind::comma)) {
        if (behind.line_ended) return refuse(peek().offset, "a line must not start with a comma");
        take();
        if (!next_argument(list.items)) return false;
        continue;
      }
      keep_comments(list.items, behind);
      if (!is(Kind::close_list)) return not_closed(open, "[", "]");
    }
    list.length = take().offset + 1 - list.offset;
    list.dangling = std::move(pending_);
    pending_ = std::move(outer);
    return true;
  }

  /// A word in a list is a forgotten quote or colon, or the next statement after a forgotten `]`.
  bool list_item_missing(std::size_t open) {
    bool new_line = at_ > 0 && tokens_[at_ - 1].kind == Kind::newline;
    if (is(Kind::word) && !new_line) return no_value(peek());
    return not_closed(open, "[", "]");
  }

  // --- blocks
  bool parse_block(Call& call) {
    if (!is(Kind::do_)) return true;
    if (call.block)
      return refuse(peek().offset, "`" + call.name + "` has two blocks", "keep `do … end` only");
    Nesting nesting(*this);
    if (!nesting.legal) return false;
    Block block;
    block.offset = take().offset;
    parse_calls(block, Kind::end_);
    if (is(Kind::end_)) {
      note_end(call, block, take());
    } else {
      call.broken = true;
      missing_end(call, block);
    }
    call.block = std::move(block);
    return true;
  }

  /// Remembers the innermost block whose `end` stands further left than its line: where an `end`
  /// is missing, that block took the one of the block around it.
  void note_end(const Call& call, const Block& block, const Token& end) {
    auto opened = indentation(call.offset);
    auto closed = indentation(end.offset);
    if (!suspect_ && opened && closed && *opened > *closed)
      suspect_ = Suspect{call.name, block.offset};
  }

  /// How far right something stands that is the first on its line.
  std::optional<std::size_t> indentation(std::size_t offset) const {
    const std::string& text = source_.text();
    std::size_t start = offset;
    while (start > 0 && (text[start - 1] == ' ' || text[start - 1] == '\t'))
      --start;
    if (start > 0 && text[start - 1] != '\n') return std::nullopt;
    return offset - start;
  }

  /// Remembers the first statement without a block whose next one stands further right: where an
  /// `end` is too many, it lacks its `do`.
  void note_indentation(const Block& block) {
    if (lacks_do_ || block.calls.empty() || block.calls.back().block) return;
    auto before = indentation(block.calls.back().offset);
    auto now = indentation(peek().offset);
    if (before && now && *now > *before) lacks_do_ = block.calls.back().offset;
  }

  void missing_end(const Call& call, const Block& block) {
    // The innermost block left open says it for those around it.
    bool told = !structure_known_ || lexed_.cut;
    structure_known_ = false;
    if (told) return;
    if (!suspect_) {
      refuse(block.offset, "this `do` of `" + call.name + "` has no `end`", "add `end`");
      return;
    }
    refuse(suspect_->offset, "this `do` of `" + suspect_->verb + "` has no `end`",
           "add `end`; the indentation shows that the next `end` belongs to a block around it");
  }

  // --- recovery
  /// To the end of the faulty statement. Its block, if it has one, is parsed as usual.
  void recover(Call& call, Kind closing) {
    call.broken = true;
    pending_.clear();
    skip_line(closing);
    if (!is(Kind::do_)) return;
    if (depth_ >= deepest_nesting) {
      skip_block();
    } else if (call.block) {
      Call second;  // reported; its block is read for what is wrong inside
      second.name = call.name;
      second.offset = call.offset;
      parse_block(second);
    } else {
      parse_block(call);
    }
    skip_line(closing);
  }

  void skip_line(Kind closing) {
    std::size_t open = 0;
    std::size_t functions = 0;
    for (;; take()) {
      switch (peek().kind) {
      case Kind::end_of_file: return;
      case Kind::open_paren:
      case Kind::open_list:
      case Kind::open_other: ++open; break;
      case Kind::close_paren:
      case Kind::close_list:
      case Kind::close_other:
        if (open == 0 && peek().kind == closing) return;
        if (open > 0) --open;
        break;
      case Kind::fn_: ++functions; break;
      case Kind::do_:
        if (functions == 0) return;
        break;
      case Kind::end_:
        if (functions == 0) return;
        --functions;
        break;
      case Kind::newline:
      case Kind::semicolon:
        if (functions == 0 && !line_goes_on(open)) return;
        break;
      default: break;
      }
    }
  }

  bool line_goes_on(std::size_t open) const {
    Kind before = at_ > 0 ? tokens_[at_ - 1].kind : Kind::newline;
    Kind after = peek(1).kind;
    if (before == Kind::operator_) return true;
    bool new_statement = after == Kind::word || after == Kind::end_;
    return (open > 0 || before == Kind::comma) && !new_statement;
  }

  void skip_block() {
    std::size_t open = 0;
    for (;;) {
      if (is(Kind::end_of_file)) return;
      if (is(Kind::do_) || is(Kind::fn_)) ++open;
      bool closes = is(Kind::end_) && --open == 0;
      take();
      if (closes) return;
    }
  }

  /// One level of blocks, lists and parentheses.
  struct Nesting {
    explicit Nesting(Parser& p) : parser(p), legal(p.depth_ < deepest_nesting) {
      ++parser.depth_;
      if (!legal)
        parser.refuse(parser.peek().offset, "blocks, lists and parentheses are nested more than " +
                                                std::to_string(deepest_nesting) + " deep");
    }
    ~Nesting() { --parser.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Parser& parser;
    bool legal;
  };

  const Source& source_;
  Report& report_;
  Tokens lexed_;
  const std::vector<Token>& tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::vector<Comment> pending_;  ///< comments that wait for the next argument
  struct Suspect {
    std::string verb;
    std::size_t offset;
  };
  std::optional<Suspect> suspect_;
  std::optional<std::size_t> lacks_do_;
  bool structure_known_ = true;
  bool cut_reported_ = false;
};

}  // namespace

Parsed parse(const Source& source, Report& report) {
  return Parser(source, report).run();
}

}  // namespace zed::spec
