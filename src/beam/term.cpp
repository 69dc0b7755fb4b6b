#include "beam/term.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace zed::beam {
namespace {

bool is_plain_atom(std::string_view name) {
  if (name.empty() || name.front() < 'a' || name.front() > 'z') return false;
  for (char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '@';
    if (!plain) return false;
  }
  return true;
}

class Printer {
public:
  explicit Printer(std::size_t limit) : limit_(limit) {}
  std::string take() && { return std::move(text_); }

  void print(const Term& term) {
    if (text_.size() > limit_) {
      if (!cut_) text_ += "...";
      cut_ = true;
      return;
    }
    std::visit([this](const auto& value) { one(value); }, term.data());
  }

private:
  void one(const Atom& a) {
    text_ += is_plain_atom(a.name) ? a.name : "'" + escaped(a.name, '\'') + "'";
  }
  void one(std::int64_t n) { text_ += std::to_string(n); }
  void one(std::uint64_t n) { text_ += std::to_string(n); }
  void one(double d) { text_ += fmt::format("{}", d); }
  void one(const Binary& b) { text_ += "<<\"" + escaped(b.bytes, '"') + "\">>"; }
  void one(const ByteList& s) { text_ += "\"" + escaped(s.bytes, '"') + "\""; }
  void one(const List& l) { all("[", l.items, l.items.size(), "]"); }
  void one(const ImproperList& l) {
    all("[", l.items, l.items.size() - 1, "|");
    print(l.items.back());
    text_ += ']';
  }
  void one(const Tuple& t) { all("{", t.items, t.items.size(), "}"); }
  void one(const Map& m) {
    text_ += "#{";
    for (std::size_t i = 0; i < m.members.size() && !cut_; ++i) {
      if (i > 0) text_ += ',';
      print(m.members[i].first);
      text_ += "=>";
      print(m.members[i].second);
    }
    text_ += '}';
  }
  void one(const Pid& p) { text_ += fmt::format("<{}.{}.{}>", p.node.name, p.id, p.serial); }
  void one(const Reference& r) {
    text_ += "#Ref<" + r.node.name;
    for (std::uint8_t i = 0; i < r.count; ++i)
      text_ += "." + std::to_string(r.ids[i]);
    text_ += '>';
  }
  void one(const Port& p) { text_ += fmt::format("#Port<{}.{}>", p.node.name, p.id); }
  void one(const Opaque& o) { text_ += fmt::format("#Opaque<{} bytes>", o.bytes.size()); }

  void all(std::string_view open, const std::vector<Term>& items, std::size_t count,
           std::string_view close) {
    text_ += open;
    for (std::size_t i = 0; i < count && !cut_; ++i) {
      if (i > 0) text_ += ',';
      print(items[i]);
    }
    text_ += close;
  }

  /// Never more than what is left of the limit: a term may hold a megabyte.
  std::string escaped(std::string_view bytes, char quote) const {
    std::string out;
    const std::size_t left = limit_ - std::min(limit_, text_.size());
    for (char c : bytes.substr(0, left)) {
      if (c == quote || c == '\\') out += '\\';
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
        out += fmt::format("\\x{{{:x}}}", static_cast<unsigned char>(c));
      else
        out += c;
    }
    if (bytes.size() > left) out += "...";
    return out;
  }

  std::size_t limit_;
  std::string text_;
  bool cut_ = false;
};

}  // namespace

std::string show(const Term& term, std::size_t max_bytes) {
  Printer printer(max_bytes);
  printer.print(term);
  return std::move(printer).take();
}

}  // namespace zed::beam
