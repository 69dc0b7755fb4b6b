// Calls, their arguments and their blocks.

#include <algorithm>

#include "spec/cluster_file.hpp"
#include "spec/parser.hpp"
#include "spec/verbs.hpp"

namespace zed::spec {

void Parser::parse_calls(Block& block, Kind closing) {
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

void Parser::give_up() {
  at_ = tokens_.size() - 1;
  structure_known_ = false;
}

bool Parser::stray_end(Kind closing) {
  if (closing != Kind::end_of_file) return false;
  std::string hint = "remove it, or look for a missing `do` above";
  if (lacks_do_)
    hint =
        "by the indentation, a `do` is missing on line " + std::to_string(source_.line(*lacks_do_));
  if (!lexed_.swallowed_do) refuse(peek().offset, "this `end` closes nothing", hint);
  structure_known_ = false;
  take();
  return true;
}

bool Parser::statement_ends(Kind closing) {
  if (is(Kind::newline) || is(Kind::semicolon) || is(Kind::comment) || is(Kind::end_of_file) ||
      is(closing))
    return true;
  return unexpected(peek(), "the end of the line",
                    is(Kind::do_) ? "" : "separate arguments by commas");
}

bool Parser::parse_call(Call& call, Kind closing) {
  return parse_head(call, closing) && parse_block(call);
}

bool Parser::parse_head(Call& call, Kind closing) {
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

std::string Parser::hint_for_no_verb(const Token& token) const {
  if (token.kind == Kind::key)
    return "a line starts with a verb; `key: value` follows one, after a comma";
  if (token.kind == Kind::do_) return "`do` stands on the line of its verb";
  std::string word = lower(text_of(token));
  if (token.kind == Kind::alias && !places_of(word).empty()) return "write `" + word + "`";
  return {};
}

bool Parser::after_goes_on() const {
  std::size_t ahead = 0;
  while (peek(ahead).kind == Kind::newline || peek(ahead).kind == Kind::comment)
    ++ahead;
  Kind kind = peek(ahead).kind;
  return ahead > 0 && (kind == Kind::atom || kind == Kind::quoted_atom || kind == Kind::open_list);
}

bool Parser::starts_value(Kind kind) const {
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

bool Parser::parse_arguments(Call& call) {
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

bool Parser::parse_parenthesised(Call& call) {
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

bool Parser::not_closed(std::size_t open, std::string_view opening, std::string_view closing) {
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

void Parser::back_to_line_end() {
  while (at_ > 0 &&
         (tokens_[at_ - 1].kind == Kind::newline || tokens_[at_ - 1].kind == Kind::comment))
    --at_;
}

bool Parser::next_argument(std::vector<Argument>& arguments) {
  Trivia trivia = take_trivia(false);
  keep_comments(arguments, trivia);
  if (starts_value(peek().kind) || is(Kind::close_list) || is(Kind::close_paren)) return true;
  return unexpected(peek(), "a value after the comma");
}

void Parser::keep_comments(std::vector<Argument>& arguments, Trivia& trivia) {
  if (!trivia.trailing.empty()) {
    if (!arguments.empty() && arguments.back().trailing.empty())
      arguments.back().trailing = std::move(trivia.trailing);
    else
      pending_.push_back({std::move(trivia.trailing), false});
  }
  for (Comment& comment : trivia.comments)
    pending_.push_back(std::move(comment));
}

void Parser::lift_comments(Call& call, std::vector<Comment>&& comments) {
  for (Comment& comment : comments)
    call.comments.push_back(std::move(comment));
}

void Parser::lift_comments(Call& call) {
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

bool Parser::flatten(Call& call) {
  if (call.arguments.empty() || call.arguments.back().key) return true;
  Expression& last = call.arguments.back().value;
  if (last.kind != Expression::Kind::list || last.items.empty() || !last.items.front().key)
    return true;
  Argument argument = std::move(call.arguments.back());
  call.arguments.pop_back();
  lift_comments(call, std::move(argument.value.dangling));
  if (!argument.trailing.empty()) call.comments.push_back({argument.trailing, false});
  argument.value.items.front().comments.insert(argument.value.items.front().comments.begin(),
                                               argument.comments.begin(), argument.comments.end());
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

bool Parser::parse_argument(Call& call) {
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

bool Parser::parse_one_liner(Call& call) {
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
  if (is(Kind::comma)) return refuse(peek().offset, "an argument after `do:`", "`do:` comes last");
  return true;
}

bool Parser::parse_item(Argument& item) {
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

bool Parser::parse_key(Argument& item) {
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

bool Parser::parse_block(Call& call) {
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

void Parser::note_end(const Call& call, const Block& block, const Token& end) {
  auto opened = indentation(call.offset);
  auto closed = indentation(end.offset);
  if (!suspect_ && opened && closed && *opened > *closed)
    suspect_ = Suspect{call.name, block.offset};
}

std::optional<std::size_t> Parser::indentation(std::size_t offset) const {
  const std::string& text = source_.text();
  std::size_t start = offset;
  while (start > 0 && (text[start - 1] == ' ' || text[start - 1] == '\t'))
    --start;
  if (start > 0 && text[start - 1] != '\n') return std::nullopt;
  return offset - start;
}

void Parser::note_indentation(const Block& block) {
  if (lacks_do_ || block.calls.empty() || block.calls.back().block) return;
  auto before = indentation(block.calls.back().offset);
  auto now = indentation(peek().offset);
  if (before && now && *now > *before) lacks_do_ = block.calls.back().offset;
}

void Parser::missing_end(const Call& call, const Block& block) {
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

}  // namespace zed::spec
