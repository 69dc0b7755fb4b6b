// Where a faulty statement ends, so that the next one can be read.

#include "spec/cluster_file.hpp"
#include "spec/parser.hpp"
#include "spec/verbs.hpp"

namespace zed::spec {

void Parser::recover(Call& call, Kind closing) {
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

void Parser::skip_line(Kind closing) {
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

bool Parser::line_goes_on(std::size_t open) const {
  Kind before = at_ > 0 ? tokens_[at_ - 1].kind : Kind::newline;
  Kind after = peek(1).kind;
  if (before == Kind::operator_) return true;
  bool new_statement = after == Kind::word || after == Kind::end_;
  return (open > 0 || before == Kind::comma) && !new_statement;
}

void Parser::skip_block() {
  std::size_t open = 0;
  for (;;) {
    if (is(Kind::end_of_file)) return;
    if (is(Kind::do_) || is(Kind::fn_)) ++open;
    bool closes = is(Kind::end_) && --open == 0;
    take();
    if (closes) return;
  }
}

}  // namespace zed::spec
