#pragma once
// Inside the room: the parser of the cluster file, one method a rule. Its methods live in parse.cpp
// (tokens, values), parse_statements.cpp and parse_recovery.cpp.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "spec/lex.hpp"
#include "spec/parse.hpp"

namespace zed::spec {

/// Comments and line ends between two things.
struct Trivia {
  std::vector<Comment> comments;
  std::string trailing;       ///< on the line of what came before
  bool blank_before = false;  ///< the last thing is followed by a blank line
  bool line_ended = false;    ///< by a newline or a `;`
};

class Parser {
  using Kind = Token::Kind;

public:
  Parser(const Source& source, Report& report)
      : source_(source), report_(report), lexed_(lex(source.text())), tokens_(lexed_.tokens) {}
  Parsed run();

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
  std::string shown(const Token& token) const;

  // --- faults
  bool refuse(std::size_t offset, std::string message, std::string hint = {});
  /// The token's own fault if it has one, else what was expected instead of it.
  bool unexpected(const Token& token, std::string expected, std::string hint = {});
  void report(const Fault& fault) { report_.error(fault.offset, fault.message, fault.hint); }
  bool report_fault_of(const Token& token);

  // --- trivia
  /// Takes newlines and comments; semicolons too where statements are separated.
  Trivia take_trivia(bool between_statements);

  // --- statements
  /// Fills `block` up to the closing token, which stays.
  void parse_calls(Block& block, Kind closing);
  /// The rest of the file is not looked at.
  void give_up();
  /// An `end` where none is open at this level. True if it was reported and dropped.
  bool stray_end(Kind closing);
  bool statement_ends(Kind closing);
  bool parse_call(Call& call, Kind closing);
  /// Verb and arguments.
  bool parse_head(Call& call, Kind closing);
  std::string hint_for_no_verb(const Token& token) const;
  bool after_goes_on() const;
  bool starts_value(Kind kind) const;
  bool parse_arguments(Call& call);
  bool parse_parenthesised(Call& call);
  bool not_closed(std::size_t open, std::string_view opening, std::string_view closing);
  /// The line that follows is a statement of its own, not part of the faulty one.
  void back_to_line_end();
  /// After a comma: comments of the last argument and of the next.
  bool next_argument(std::vector<Argument>& arguments);
  void keep_comments(std::vector<Argument>& arguments, Trivia& trivia);
  static void lift_comments(Call& call, std::vector<Comment>&& comments);
  void lift_comments(Call& call);
  /// A keyword list in brackets as the last argument is the same as one without.
  bool flatten(Call& call);
  /// One argument; `do: …` becomes the call's block.
  bool parse_argument(Call& call);
  bool parse_one_liner(Call& call);
  bool parse_item(Argument& item);
  bool parse_key(Argument& item);

  // --- values
  bool parse_value(Expression& value);
  bool no_value(const Token& token);
  bool take_string(Expression& value, std::size_t colon);
  bool take_atom(Expression& value, std::string name);
  /// :nil, :true and :false are nil, true and false in Elixir.
  bool finish_atom(Expression& value, std::string name);
  static std::string without_underscores(std::string_view written);
  bool take_integer(Expression& value);
  bool take_real(Expression& value);
  bool parse_list(Expression& list);
  /// A word in a list is a forgotten quote or colon, or the next statement after a forgotten `]`.
  bool list_item_missing(std::size_t open);

  // --- blocks
  bool parse_block(Call& call);
  /// Remembers the innermost block whose `end` stands further left than its line: where an `end`
  /// is missing, that block took the one of the block around it.
  void note_end(const Call& call, const Block& block, const Token& end);
  /// How far right something stands that is the first on its line.
  std::optional<std::size_t> indentation(std::size_t offset) const;
  /// Remembers the first statement without a block whose next one stands further right: where an
  /// `end` is too many, it lacks its `do`.
  void note_indentation(const Block& block);
  void missing_end(const Call& call, const Block& block);

  // --- recovery
  /// To the end of the faulty statement. Its block, if it has one, is parsed as usual.
  void recover(Call& call, Kind closing);
  void skip_line(Kind closing);
  bool line_goes_on(std::size_t open) const;
  void skip_block();
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

}  // namespace zed::spec
