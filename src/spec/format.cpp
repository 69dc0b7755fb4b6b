// The canonical layout: two spaces a level, no parentheses around arguments, `do … end` blocks,
// 98 columns as `mix format` has them.

#include <algorithm>

#include "spec/cluster_file.hpp"
#include "spec/parse.hpp"

namespace zed::spec {
namespace {

constexpr std::size_t widest = 98;

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool has_comments(const Argument& argument);

bool has_comments(const Expression& value) {
  return !value.dangling.empty() ||
         std::any_of(value.items.begin(), value.items.end(),
                     [](const Argument& item) { return has_comments(item); });
}
bool has_comments(const Argument& argument) {
  return !argument.comments.empty() || !argument.trailing.empty() || has_comments(argument.value);
}

bool has_heredoc(const Expression& value) {
  return value.kind == Expression::Kind::heredoc ||
         std::any_of(value.items.begin(), value.items.end(),
                     [](const Argument& item) { return has_heredoc(item.value); });
}

std::string escaped_key(std::string_view key) {
  if (is_plain_key(key)) return std::string(key);
  std::string quoted = "\"";
  for (std::size_t i = 0; i < key.size(); ++i) {
    char c = key[i];
    if (c == '"' || c == '\\' || (c == '#' && i + 1 < key.size() && key[i + 1] == '{'))
      quoted += '\\';
    if (c == '\n')
      quoted += "\\n";
    else
      quoted += c;
  }
  return quoted + "\"";
}

class Printer {
public:
  std::string print(const Block& file) {
    calls(file, 0);
    return std::move(out_);
  }

private:
  void line(std::size_t indent, std::string_view text) {
    if (!text.empty()) out_.append(indent, ' ').append(text);
    out_ += '\n';
  }

  void comments(const std::vector<Comment>& list, std::size_t indent, bool first) {
    for (const Comment& comment : list) {
      if (comment.blank_before && !first) out_ += '\n';
      line(indent, trimmed(comment.text));
      first = false;
    }
  }

  static std::string trimmed(std::string text) {
    text.erase(text.find_last_not_of(" \t") + 1);
    return text;
  }
  static std::string behind(const std::string& comment) {
    return comment.empty() ? "" : " " + trimmed(comment);
  }

  void calls(const Block& block, std::size_t indent) {
    bool first = true;
    for (const Call& call : block.calls) {
      comments(call.comments, indent, first);
      if (call.blank_before && !(first && call.comments.empty())) out_ += '\n';
      print_call(call, indent);
      first = false;
    }
    comments(block.dangling, indent, first);
  }

  void print_call(const Call& call, std::size_t indent) {
    out_.append(indent, ' ').append(call.name);
    std::string head = flat_arguments(call);
    std::size_t rest = call.block ? 3 : 0;  // " do"
    if (fits(call, indent + call.name.size() + width_of(head) + rest))
      out_ += head;
    else
      broken_arguments(call, indent);
    if (call.block) print_block(*call.block, indent);
    out_ += behind(call.trailing);
    out_ += '\n';
  }

  void print_block(const Block& block, std::size_t indent) {
    out_ += " do" + behind(block.trailing) + "\n";
    calls(block, indent + 2);
    out_.append(indent, ' ').append("end");
  }

  static bool fits(const Call& call, std::size_t width) {
    return width <= widest &&
           std::none_of(call.arguments.begin(), call.arguments.end(), [](const Argument& argument) {
             return has_comments(argument) || has_heredoc(argument.value);
           });
  }

  std::string flat_arguments(const Call& call) {
    std::string text;
    for (const Argument& argument : call.arguments)
      text += (text.empty() ? " " : ", ") + flat(argument);
    return text;
  }

  static std::string key_of(const Argument& argument) {
    return argument.key ? escaped_key(*argument.key) + ": " : "";
  }
  static std::string flat(const Argument& argument) {
    return key_of(argument) + flat(argument.value);
  }
  static std::string flat(const Expression& value) {
    if (value.kind != Expression::Kind::list) return value.raw;
    std::string text;
    for (const Argument& item : value.items)
      text += (text.empty() ? "" : ", ") + flat(item);
    return "[" + text + "]";
  }

  /// The first argument stays with its verb, each other gets its own line.
  void broken_arguments(const Call& call, std::size_t indent) {
    const auto& arguments = call.arguments;
    std::size_t inner = arguments.size() > 1 ? indent + 2 : indent;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      bool last = i + 1 == arguments.size();
      if (i == 0) {
        out_ += ' ';
      } else {
        comments(arguments[i].comments, inner, true);
        out_.append(inner, ' ');
      }
      print_item(arguments[i], i == 0 ? indent : inner, !last);
      if (!last) out_ += '\n';
    }
  }

  void print_item(const Argument& item, std::size_t indent, bool comma) {
    out_ += key_of(item);
    print_value(item.value, indent);
    if (comma) out_ += ',';
    out_ += behind(item.trailing);
  }

  void print_value(const Expression& value, std::size_t indent) {
    if (value.kind == Expression::Kind::heredoc) return heredoc(value.raw, indent);
    std::string text = flat(value);
    std::size_t line_start = out_.rfind('\n') + 1;  // npos + 1 is 0
    std::size_t used = width_of(std::string_view(out_).substr(line_start));
    bool whole =
        value.kind != Expression::Kind::list ||
        (used + width_of(text) + 1 <= widest && !has_comments(value) && !has_heredoc(value));
    if (whole || (value.items.empty() && value.dangling.empty()))
      out_ += text;
    else
      broken_list(value, indent);
  }

  void broken_list(const Expression& list, std::size_t indent) {
    out_ += "[\n";
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      comments(list.items[i].comments, indent + 2, true);
      out_.append(indent + 2, ' ');
      print_item(list.items[i], indent + 2, i + 1 < list.items.size());
      out_ += '\n';
    }
    comments(list.dangling, indent + 2, true);
    out_.append(indent, ' ').append("]");
  }

  void heredoc(std::string_view lines, std::size_t indent) {
    out_ += "\"\"\"\n";
    while (!lines.empty()) {
      std::size_t end = lines.find('\n');
      line(indent, lines.substr(0, end));
      lines.remove_prefix(end + 1);
    }
    out_.append(indent, ' ').append("\"\"\"");
  }

  std::string out_;
};

}  // namespace

Formatted format(std::string_view text) {
  if (auto refused = too_large(text)) return {std::nullopt, {*refused}};
  Report report;
  Source source(text, report);
  Parsed parsed = parse(source, report);
  if (report.failed()) return {std::nullopt, source.diagnostics(report)};
  return {Printer().print(parsed.file), {}};
}

}  // namespace zed::spec
