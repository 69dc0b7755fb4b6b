// Tokens, what stands between them, and values.

#include "spec/parse.hpp"

#include <algorithm>
#include <charconv>

#include "spec/cluster_file.hpp"
#include "spec/parser.hpp"
#include "spec/verbs.hpp"

namespace zed::spec {

std::size_t Call::first_keyword() const {
  std::size_t i = 0;
  while (i < arguments.size() && !arguments[i].key)
    ++i;
  return i;
}

Parsed Parser::run() {
  Parsed parsed;
  parse_calls(parsed.file, Kind::end_of_file);
  if (lexed_.cut && !cut_reported_) report(lexed_.faults.rbegin()->second);
  parsed.structure_known = structure_known_ && !lexed_.cut;
  return parsed;
}

std::string Parser::shown(const Token& token) const {
  switch (token.kind) {
  case Kind::end_of_file: return "the end of the file";
  case Kind::newline: return "the end of the line";
  default: return quote(text_of(token));
  }
}

bool Parser::refuse(std::size_t offset, std::string message, std::string hint) {
  report_.error(offset, std::move(message), std::move(hint));
  return false;
}

bool Parser::unexpected(const Token& token, std::string expected, std::string hint) {
  if (report_fault_of(token)) return false;
  // The file's end says nothing: its reason has been or will be reported.
  if (token.kind == Kind::end_of_file && lexed_.cut) return false;
  return refuse(token.offset, "expected " + expected + ", got " + shown(token), std::move(hint));
}

bool Parser::report_fault_of(const Token& token) {
  auto found = lexed_.faults.find(token.offset);
  if (found == lexed_.faults.end()) return false;
  report(found->second);
  if (lexed_.cut && token.offset == lexed_.faults.rbegin()->first) cut_reported_ = true;
  return true;
}

Trivia Parser::take_trivia(bool between_statements) {
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

bool Parser::parse_value(Expression& value) {
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

bool Parser::no_value(const Token& token) {
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

bool Parser::take_string(Expression& value, std::size_t colon) {
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

bool Parser::take_atom(Expression& value, std::string name) {
  take();
  return finish_atom(value, std::move(name));
}

bool Parser::finish_atom(Expression& value, std::string name) {
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

std::string Parser::without_underscores(std::string_view written) {
  std::string digits;
  for (char c : written)
    if (c != '_') digits += c;
  return digits;
}

bool Parser::take_integer(Expression& value) {
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

bool Parser::take_real(Expression& value) {
  std::size_t offset = take().offset;
  value.kind = Expression::Kind::real;
  value.text = without_underscores(value.raw);
  const char* end = value.text.data() + value.text.size();
  auto [stop, error] = std::from_chars(value.text.data(), end, value.real);
  if (error != std::errc{} || stop != end)
    return refuse(offset, "the number " + quote(value.raw) + " is out of range");
  return true;
}

bool Parser::parse_list(Expression& list) {
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
      return refuse(item.offset(), "a value without a key after `" + *list.items.back().key + ":`",
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

bool Parser::list_item_missing(std::size_t open) {
  bool new_line = at_ > 0 && tokens_[at_ - 1].kind == Kind::newline;
  if (is(Kind::word) && !new_line) return no_value(peek());
  return not_closed(open, "[", "]");
}

Parsed parse(const Source& source, Report& report) {
  return Parser(source, report).run();
}

}  // namespace zed::spec
